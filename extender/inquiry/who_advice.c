#include "extender/inquiry/who_advice.h"

enum { COMMAND_BYTES_MAX = 4096 };

void advice_add(struct advice *advice, json_t *text)
{
    json_t *piece = json_object();

    advice->last = NULL;
    if (value_put(piece, "text", text) != 0 || json_array_append(advice->list, piece) != 0)
        advice->rc = -1;
    else
        advice->last = piece;
    json_decref(piece);
}

static bool has_command(const json_t *list, struct slice command)
{
    json_t *piece;
    size_t i;

    json_array_foreach (list, i, piece)
        if (slice_equal(slice_of(value_string(piece, "command")), command))
            return true;
    return false;
}

void advice_command(struct advice *advice, enum advice_row row, const struct advice_words *words)
{
    struct buf command;

    if (advice->last == NULL)
        return;
    buf_init(&command, COMMAND_BYTES_MAX);
    if (advice_command_text(&command, row, words) &&
        has_command(advice->list, buf_slice(&command))) {
        advice->rc |= json_array_remove(advice->list, json_array_size(advice->list) - 1);
        advice->last = NULL;
    } else {
        advice->rc |= advice_row_put(advice->last, row, words);
    }
    buf_dispose(&command);
}

void advice_warn(struct advice *advice, json_t *text)
{
    const char *known = advice->last == NULL ? "" : value_string(advice->last, "warning");

    if (text == NULL)
        advice->rc = -1;
    if (text == NULL || advice->last == NULL) {
        json_decref(text);
        return;
    }
    json_t *both =
        *known == '\0' ? json_incref(text) : json_sprintf("%s; %s", known, json_string_value(text));
    advice->rc |= value_put(advice->last, "warning", both);
    json_decref(text);
}

/* Whether the claim is of a generic ephemeral volume of the pod. */
static bool is_own(const struct who_claim *claim, const struct pod *pod)
{
    for (size_t i = 0; i < pod->use_count; i++)
        if (claim_at(pod->uses[i].claim) == claim->claim && pod->uses[i].is_ephemeral)
            return true;
    return false;
}

void advice_warn_of_loss(struct advice *advice, const struct who_claim *claim,
                         const struct pod *pod)
{
    if (is_own(claim, pod))
        advice_warn(advice, json_string("the claim is of a generic ephemeral volume of this pod: "
                                        "it is deleted with the pod, and its data is lost"));
    else if (!claim->claim->is_deleting)
        return;
    else if (claim->has_volume &&
             slice_equal(claim->volume_details.reclaim_policy, SLICE("Delete")))
        advice_warn(advice, json_sprintf("the claim is being deleted: when its last pod is gone, "
                                         "volume %.*s and its data are deleted, too",
                                         SLICE_ARG(claim->volume)));
    else
        advice_warn(advice, json_string("the claim is being deleted: it is gone when its last pod "
                                        "is gone"));
}
