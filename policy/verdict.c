#include "policy/verdict.h"

static const char too_big[] = "the pod is too big to be judged";

const char *code_text(enum verdict_code code)
{
    static const char *const texts[CODE_COUNT] = {
        "Success", "Skip", "Unschedulable", "UnschedulableAndUnresolvable", "Error",
    };
    return texts[code];
}

void verdict_out_of_memory(struct verdict *out)
{
    static struct slice reason = {too_big, sizeof too_big - 1};

    *out = (struct verdict){.code = CODE_ERROR, .reasons = &reason, .reason_count = 1};
}

bool verdict_add_reason(struct verdict *out, struct arena *arena, struct slice reason)
{
    struct slice *grown = arena_grow(arena, out->reasons, out->reason_count, sizeof *grown);

    if (grown == NULL || reason.ptr == NULL) {
        verdict_out_of_memory(out);
        return false;
    }
    grown[out->reason_count++] = reason;
    out->reasons = grown;
    return true;
}

bool verdict_add_cause(struct verdict *out, struct arena *arena, enum kind kind, struct slice ns,
                       struct slice name, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];
    struct slice uid_slice = uid == NULL ? SLICE("") : uid_text(uid, text);

    if (out->cause_count == CAUSES_MAX)
        return true;
    struct object_reference *grown =
        arena_grow(arena, out->causes, out->cause_count, sizeof *grown);
    struct object_reference cause = {kind, arena_copy(arena, ns), arena_copy(arena, name),
                                     arena_copy(arena, uid_slice)};
    if (grown == NULL || cause.ns.ptr == NULL || cause.name.ptr == NULL || cause.uid.ptr == NULL) {
        verdict_out_of_memory(out);
        return false;
    }
    grown[out->cause_count++] = cause;
    out->causes = grown;
    return true;
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
