#include "policy/verdict.h"

static const char too_big[] = "the pod, or the list of nodes, needs too much memory";

const char *code_text(enum verdict_code code)
{
    static const char *const texts[CODE_COUNT] = {
        "Success", "Skip", "Unschedulable", "UnschedulableAndUnresolvable", "Error",
    };
    return texts[code];
}

static struct slice no_memory = {too_big, sizeof too_big - 1};

void verdict_out_of_memory(struct verdict *out)
{
    *out = (struct verdict){.code = CODE_ERROR,
                            .decided_by = out->decided_by,
                            .reasons = &no_memory,
                            .reason_count = 1};
}

static bool has_no_memory(const struct verdict *verdict)
{
    return verdict->reasons == &no_memory;
}

bool verdict_add_reason(struct verdict *out, struct arena *arena, struct slice reason)
{
    if (has_no_memory(out))
        return false;
    struct slice *grown = arena_grow(arena, out->reasons, out->reason_count, sizeof *grown);
    if (grown == NULL || reason.ptr == NULL) {
        verdict_out_of_memory(out);
        return false;
    }
    grown[out->reason_count++] = reason;
    out->reasons = grown;
    return true;
}

bool verdict_reject(struct verdict *out, struct arena *arena, struct slice reason)
{
    if (has_no_memory(out))
        return false;
    out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (out->reason_count < VERDICT_REASONS_MAX)
        return verdict_add_reason(out, arena, reason);
    out->left_out++;
    return false;
}

bool verdict_add_left_out(struct verdict *out, struct arena *arena)
{
    return out->left_out == 0 ||
           verdict_add_reason(out, arena, arena_printf(arena, "and %zu more", out->left_out));
}

bool verdict_add_warning(struct verdict *out, struct arena *arena, struct slice text)
{
    if (has_no_memory(out) || out->warning_count == WARNINGS_MAX)
        return !has_no_memory(out);
    struct warning *grown = arena_grow(arena, out->warnings, out->warning_count, sizeof *grown);
    if (grown == NULL || text.ptr == NULL) {
        verdict_out_of_memory(out);
        return false;
    }
    grown[out->warning_count++] = (struct warning){.text = text};
    out->warnings = grown;
    return true;
}

/* Adds a reference, which is in the arena, to a list of the verdict. */
static bool add_reference(struct verdict *out, struct object_reference **list, size_t *count,
                          struct arena *arena, const struct object_reference *reference)
{
    if (has_no_memory(out) || *count == CAUSES_MAX)
        return !has_no_memory(out);
    struct object_reference *grown = arena_grow(arena, *list, *count, sizeof *grown);
    if (grown == NULL || reference->ns.ptr == NULL || reference->name.ptr == NULL ||
        reference->uid.ptr == NULL) {
        verdict_out_of_memory(out);
        return false;
    }
    grown[(*count)++] = *reference;
    *list = grown;
    return true;
}

static struct object_reference copy_reference(struct arena *arena,
                                              const struct object_reference *object)
{
    return (struct object_reference){object->kind, arena_copy(arena, object->ns),
                                     arena_copy(arena, object->name),
                                     arena_copy(arena, object->uid)};
}

bool verdict_add_cause(struct verdict *out, struct arena *arena, enum kind kind, struct slice ns,
                       struct slice name, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];
    struct object_reference cause = {kind, ns, name, uid == NULL ? SLICE("") : uid_text(uid, text)};
    struct object_reference copy = copy_reference(arena, &cause);

    return add_reference(out, &out->causes, &out->cause_count, arena, &copy);
}

bool verdict_keep_cause(struct verdict *out, struct arena *arena,
                        const struct object_reference *cause)
{
    return add_reference(out, &out->causes, &out->cause_count, arena, cause);
}

/* Removes the last object that is no pod, if there is one. */
static void make_room_for_pod(struct verdict *verdict)
{
    size_t at = verdict->awaited_count;

    while (at > 0 && verdict->awaited[at - 1].kind == KIND_POD)
        at--;
    if (at == 0)
        return;
    verdict->awaited_count--;
    for (size_t i = at - 1; i < verdict->awaited_count; i++)
        verdict->awaited[i] = verdict->awaited[i + 1];
}

bool verdict_add_awaited(struct verdict *out, struct arena *arena,
                         const struct object_reference *object)
{
    if (object_reference_is_among(object, out->awaited, out->awaited_count))
        return true;
    if (out->awaited_count == CAUSES_MAX && object->kind == KIND_POD)
        make_room_for_pod(out);
    struct object_reference copy = copy_reference(arena, object);
    return add_reference(out, &out->awaited, &out->awaited_count, arena, &copy);
}

bool verdict_await(struct verdict *out, struct arena *arena, enum kind kind, struct slice name)
{
    return verdict_add_awaited(out, arena, &(struct object_reference){.kind = kind, .name = name});
}

struct slice verdict_message(const struct verdict *verdict, struct arena *arena)
{
    struct slice joined = {"", 0};

    if (verdict->reason_count == 1)
        return verdict->reasons[0];
    for (size_t i = 0; i < verdict->reason_count && joined.ptr != NULL; i++)
        joined = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(joined), i == 0 ? "" : "; ",
                              SLICE_ARG(verdict->reasons[i]));
    return joined.ptr == NULL ? SLICE(too_big) : joined;
}
