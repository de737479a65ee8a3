#include "extender/inquiry/who_advice.h"

#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES_MAX = 4096, WARNING_BYTES_MAX = 64 * 1024 };

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

/* A name that means nothing to a shell, and is no option. */
static bool is_plain(struct slice word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && (c < '0' || c > '9') && (i == 0 || (c != '-' && c != '.')))
            return false;
    }
    return word.len != 0;
}

/* False: a word is not plain, or the command is too long. */
static bool put_words(struct buf *out, const char *format, const struct slice *words)
{
    for (const char *hole; (hole = strchr(format, '%')) != NULL; format = hole + 1, words++) {
        if (!is_plain(*words))
            return false;
        buf_put(out, (struct slice){format, (size_t)(hole - format)});
        buf_put(out, *words);
    }
    buf_put(out, slice_of(format));
    return !out->failed;
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

void advice_command(struct advice *advice, const char *format, const struct slice *words)
{
    struct buf command;

    if (advice->last == NULL)
        return;
    buf_init(&command, COMMAND_BYTES_MAX);
    bool is_usable = put_words(&command, format, words);
    if (is_usable && has_command(advice->list, buf_slice(&command))) {
        advice->rc |= json_array_remove(advice->list, json_array_size(advice->list) - 1);
        advice->last = NULL;
    } else if (is_usable) {
        advice->rc |= value_put(advice->last, "command", value_text(buf_slice(&command)));
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
                         const struct who_pod *holder)
{
    bool has_volume = claim->volume.len != 0;

    if (is_own(claim, holder->pod))
        advice_warn(advice, json_string("the claim is of a generic ephemeral volume of this pod: "
                                        "it is deleted with the pod, and its data is lost"));
    else if (!claim->claim->is_deleting)
        return;
    else if (has_volume && slice_equal(claim->reclaim_policy, SLICE("Delete")))
        advice_warn(advice, json_sprintf("the claim is being deleted: when its last pod is gone, "
                                         "volume %.*s and its data are deleted, too",
                                         SLICE_ARG(claim->volume)));
    else
        advice_warn(advice, json_string("the claim is being deleted: it is gone when its last pod "
                                        "is gone"));
}
