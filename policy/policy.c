#include "policy/policy.h"

#include "policy/read_write_once_pod.h"

const struct policy *const policies[] = {&read_write_once_pod, NULL};

const char *code_text(enum verdict_code code)
{
    static const char *const texts[CODE_COUNT] = {
        "Success", "Skip", "Unschedulable", "UnschedulableAndUnresolvable", "Error",
    };
    return texts[code];
}

void policy_prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out, const struct policy **decided_by)
{
    struct verdict best = {.code = CODE_SKIP};

    *decided_by = policies[0];
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        struct verdict verdict = {0};
        (*policy)->prefilter(view, pod, arena, &verdict);
        if (verdict.code == CODE_SKIP)
            continue;
        best = verdict;
        *decided_by = *policy;
        if (code_is_rejection(verdict.code))
            break;
    }
    *out = best;
}
