/* What to keep of a cluster for an answer, while it is read. */
#include <stdlib.h>

#include "extender/inquiry/why_internal.h"

enum { READING_BYTES_MAX = 256 << 20 };

struct why *why_new(const struct why_question *question)
{
    struct why *why = calloc(1, sizeof *why);

    if (why == NULL)
        return NULL;
    why->question = question;
    why->unseen = question->count;
    arena_init(&why->reading, READING_BYTES_MAX);
    why->seen = arena_alloc(&why->reading, (question->count + 1) * sizeof *why->seen);
    if (why->seen != NULL)
        return why;
    why_free(why);
    return NULL;
}

void why_free(struct why *why)
{
    if (why == NULL)
        return;
    arena_dispose(&why->reading);
    free(why);
}

/* ---- the pods that are asked about ---- */

/* Marks the operands that the pod is meant by. Whether there are any. */
static bool asks_for(struct why *why, struct slice ns, struct slice name)
{
    bool is_asked = false;

    for (size_t i = 0; i < why->question->count; i++) {
        const struct operand *operand = &why->question->operands[i];
        if (!operand_is(operand, ns, name))
            continue;
        is_asked = true;
        if (operand->ns.len != 0 && !why->seen[i])
            why->unseen--;
        why->seen[i] = true;
    }
    return is_asked;
}

static struct why_asked *find_asked(const struct why *why, const struct meta *meta)
{
    struct why_asked *asked = why->asked;

    while (asked != NULL &&
           !(slice_equal(asked->name, meta->name) && slice_equal(asked->ns, meta->ns)))
        asked = asked->next;
    return asked;
}

static const struct pod_mounts *copy_mounts(struct why *why, const struct pod_mounts *mounts)
{
    void *memory = mounts == NULL ? NULL : arena_alloc(&why->reading, mounts_bytes(mounts));

    if (memory == NULL) {
        why->has_no_memory = why->has_no_memory || mounts != NULL;
        return NULL;
    }
    return mounts_copy(mounts, memory);
}

/* Remembers the pod; of one that is read twice, the last text counts. */
static void remember(struct why *why, const struct pod_object *pod)
{
    struct why_asked *asked = find_asked(why, &pod->meta);

    if (asked == NULL) {
        asked = arena_alloc(&why->reading, sizeof *asked);
        if (asked == NULL) {
            why->has_no_memory = true;
            return;
        }
        asked->ns = arena_copy(&why->reading, pod->meta.ns);
        asked->name = arena_copy(&why->reading, pod->meta.name);
        asked->next = why->asked;
        why->asked = asked;
    }
    asked->claim_count = 0;
    asked->claims = arena_alloc(&why->reading, (pod->claim_count + 1) * sizeof *asked->claims);
    for (size_t i = 0; asked->claims != NULL && i < pod->claim_count; i++) {
        asked->claims[asked->claim_count] = arena_copy(&why->reading, pod->claims[i].name);
        if (asked->claims[asked->claim_count++].ptr == NULL)
            why->has_no_memory = true;
    }
    asked->mounts = copy_mounts(why, pod->mounts);
    if (asked->claims == NULL || asked->ns.ptr == NULL || asked->name.ptr == NULL)
        why->has_no_memory = true;
}

/* ---- what has to do with them ---- */

static bool is_asked_namespace(const struct why *why, struct slice ns)
{
    for (size_t i = 0; i < why->question->count; i++) {
        struct slice asked = why->question->operands[i].ns;
        if (asked.len == 0 || slice_equal(asked, ns))
            return true;
    }
    return false;
}

/* Whether a pod that is asked about may name the claim. Until all of them are read, any claim of
 * their namespaces may be one. */
static bool may_be_named(const struct why *why, struct slice ns, struct slice claim)
{
    if (!is_asked_namespace(why, ns))
        return false;
    if (why->unseen != 0)
        return true;
    for (const struct why_asked *asked = why->asked; asked != NULL; asked = asked->next)
        for (size_t i = 0; slice_equal(asked->ns, ns) && i < asked->claim_count; i++)
            if (slice_equal(asked->claims[i], claim))
                return true;
    return false;
}

static bool keeps_pod(struct why *why, const struct pod_object *pod)
{
    if (asks_for(why, pod->meta.ns, pod->meta.name)) {
        remember(why, pod);
        return true;
    }
    for (size_t i = 0; !phase_is_terminal(pod->phase) && i < pod->claim_count; i++)
        if (may_be_named(why, pod->meta.ns, pod->claims[i].name))
            return true;
    return false;
}

static bool keeps(void *context, const struct object *object)
{
    struct why *why = context;
    const struct slice *attributes = object->resource.attributes;

    switch (object->kind) {
    case KIND_POD: return keeps_pod(why, &object->pod);
    case KIND_CLAIM: return may_be_named(why, object->meta.ns, object->meta.name);
    case KIND_VOLUME:
        return attributes[VOLUME_CLAIM_NAME].len == 0 ||
               may_be_named(why, attributes[VOLUME_CLAIM_NAMESPACE], attributes[VOLUME_CLAIM_NAME]);
    default: return true;
    }
}

struct slice why_namespace(const struct why_question *question)
{
    struct slice ns = question->count == 0 ? SLICE("") : question->operands[0].ns;

    for (size_t i = 1; i < question->count; i++)
        if (!slice_equal(question->operands[i].ns, ns))
            return SLICE("");
    return ns;
}

struct inquiry_wish why_wish(struct why *why)
{
    return (struct inquiry_wish){
        .kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM | 1U << KIND_VOLUME |
                 1U << KIND_STORAGE_CLASS | 1U << KIND_CSI_DRIVER | 1U << KIND_CSI_NODE |
                 1U << KIND_VOLUME_ATTRIBUTES_CLASS | 1U << KIND_POD_DISRUPTION_BUDGET |
                 1U << KIND_VOLUME_ATTACHMENT,
        .ns = why_namespace(why->question),
        .keeps = keeps,
        .keeps_workloads = true,
        .reads_finished = true,
        .context = why,
    };
}
