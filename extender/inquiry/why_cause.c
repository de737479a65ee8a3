/* Puts causes together. */
#include "extender/inquiry/who_advice.h"
#include "extender/inquiry/why_internal.h"

static const char *effect_text(enum why_effect effect)
{
    static const char *const texts[] = {[WHY_BLOCKS] = "Blocks",
                                        [WHY_NARROWS] = "Narrows",
                                        [WHY_LATER] = "Later",
                                        [WHY_NORMAL] = "Normal"};
    return texts[effect];
}

static json_t *describe_object(const struct object_reference *object)
{
    json_t *value = json_object();
    int rc = value_put(value, "kind", json_string(kind_text(object->kind))) |
             value_put(value, "name", value_text(object->name));

    if (object->ns.len != 0)
        rc |= value_put(value, "namespace", value_text(object->ns));
    return value_whole(value, rc);
}

void why_add(struct why_pod *pod, enum why_effect effect, const struct object_reference *object,
             json_t *text)
{
    json_t *cause = json_object();
    int rc = value_put(cause, "cause", json_string(pod->word)) |
             value_put(cause, "effect", json_string(effect_text(effect))) |
             value_put(cause, "object", describe_object(object)) | value_put(cause, "text", text) |
             value_put(cause, "helps", json_array());

    pod->rc |= json_array_append_new(pod->causes, value_whole(cause, rc));
}

static json_t *last_cause(const struct why_pod *pod)
{
    return json_array_get(pod->causes, json_array_size(pod->causes) - 1);
}

void why_help(struct why_pod *pod, json_t *text)
{
    json_t *help = json_object();
    int rc = value_put(help, "text", text);

    pod->rc |= rc | json_array_append_new(json_object_get(last_cause(pod), "helps"), help);
}

void why_help_all(struct why_pod *pod, json_t *helps)
{
    pod->rc |=
        helps == NULL ? -1 : json_array_extend(json_object_get(last_cause(pod), "helps"), helps);
    json_decref(helps);
}

static struct advice last_help(const struct why_pod *pod)
{
    json_t *helps = json_object_get(last_cause(pod), "helps");

    return (struct advice){helps, json_array_get(helps, json_array_size(helps) - 1), 0};
}

void why_command(struct why_pod *pod, enum advice_row row, const struct advice_words *words)
{
    struct advice advice = last_help(pod);

    advice_command(&advice, row, words);
    pod->rc |= advice.rc;
}

/* ---- nodes ---- */

bool *why_flags(struct why_pod *pod)
{
    bool *flags = arena_alloc(pod->arena, (pod->node_count + 1) * sizeof *flags);

    pod->rc |= flags == NULL ? -1 : 0;
    return flags;
}

size_t why_count_nodes(const struct why_pod *pod, const bool *flags, bool wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < pod->node_count; i++)
        count += flags[i] == wanted ? 1 : 0;
    return count;
}

struct slice why_node_names(const struct why_pod *pod, const bool *flags, bool wanted)
{
    size_t count = 0;
    struct slice text = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < pod->node_count && ok; i++)
        if (flags[i] == wanted && count++ < WHY_NAMES_SHOWN_MAX)
            ok = arena_append(pod->arena, &text, count == 1 ? SLICE("") : SLICE(", ")) &&
                 arena_append(pod->arena, &text, pod->nodes[i].name);
    if (ok && count > WHY_NAMES_SHOWN_MAX)
        return arena_printf(pod->arena, "%.*s and %zu more", SLICE_ARG(text),
                            count - WHY_NAMES_SHOWN_MAX);
    return ok ? text : (struct slice){NULL, 0};
}

void why_add_nodes(struct why_pod *pod, enum why_effect effect, const bool *rejected,
                   const struct object_reference *object, json_t *text)
{
    size_t count = rejected == NULL ? 0 : why_count_nodes(pod, rejected, true);

    if (count == 0) {
        json_decref(text);
        return;
    }
    if (effect == WHY_NARROWS && count == pod->node_count)
        effect = WHY_BLOCKS;
    for (size_t i = 0; effect != WHY_LATER && i < pod->node_count; i++)
        pod->nodes[i].is_out = pod->nodes[i].is_out || rejected[i];
    why_add(pod, effect, object, text);
    pod->rc |= value_put(last_cause(pod), "rejectedNodes", json_integer((json_int_t)count));
}

/* ---- what causes are about ---- */

struct object_reference why_claim_reference(const struct why_claim *claim)
{
    return (struct object_reference){.kind = KIND_CLAIM,
                                     .ns = name_text(claim->who.claim->ns),
                                     .name = claim_name(claim->who.claim)};
}

struct object_reference why_volume_reference(const struct why_claim *claim)
{
    return (struct object_reference){.kind = KIND_VOLUME, .name = claim->who.volume};
}

struct object_reference why_pod_reference(const struct why_pod *pod)
{
    return (struct object_reference){
        .kind = KIND_POD, .ns = name_text(pod->pod->ns), .name = pod_name(pod->pod)};
}
