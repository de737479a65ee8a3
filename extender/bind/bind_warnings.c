#include "extender/bind/bind_warnings.h"

#include "extender/live/events.h"

static void add(struct bind_warnings *out, const struct policy *policy, struct slice text)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].policy == policy && slice_equal(out->items[i].text, text))
            return;
    if (out->count < WARNINGS_MAX)
        out->items[out->count++] = (struct warning){.policy = policy, .text = text};
}

int bind_warnings_collect(struct bind_warnings *out, const struct verdict *verdict,
                          const struct bind_call *call, struct error *err)
{
    const struct node_filter *filter = NULL;
    struct slice node = call->request->node, reason;

    out->count = 0;
    for (size_t i = 0; i < verdict->warning_count; i++)
        add(out, verdict->warnings[i].policy, verdict->warnings[i].text);
    while ((filter = policy_warn(verdict, filter, node, call->arena, &reason)) != NULL) {
        if (reason.ptr == NULL)
            return error_no_memory(err);
        add(out, filter->policy, reason);
    }
    return 0;
}

void bind_warnings_report(const struct bind_warnings *warnings, const struct bind_call *call)
{
    struct object_reference pod = bind_request_pod(call->request);

    for (size_t i = 0; i < warnings->count; i++) {
        const struct warning *warning = &warnings->items[i];
        metrics_count_warning(&call->state->metrics, warning->policy);
        events_post(call->state->events, call->state->api, &pod, "Warning", "VolumeWarning",
                    warning->text);
    }
}
