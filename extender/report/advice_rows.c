#include "extender/report/advice_rows.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 * 1024 };

static const struct advice_texts table[ADVICE_ROW_COUNT] = {
    [ADVICE_DELETE_POD] = {"delete-pod",
                           "the pod holds the claim, and has no controller; its node is ready, or "
                           "its kubelet answers",
                           "kubectl delete pod -n <ns> <name>",
                           "no controller creates the pod again",
                           "create the pod again from its manifest", NULL},
    [ADVICE_END_OLD] =
        {"end-old",
         "the holder is of the older ReplicaSet of a Deployment whose new pod waits for the claim, "
         "and no other pod of the Deployment has it",
         "kubectl scale -n <ns> replicaset <name> --replicas=0",
         "it stops the old pod: there is none until the new one is ready", NULL, NULL},
    [ADVICE_DELETE_ENDED_POD] = {"delete-ended-pod",
                                 "the pod has ended, and names a claim that is being deleted, "
                                 "which goes when no pod that has a node names it",
                                 "kubectl delete pod -n <ns> <name>",
                                 "the pod's logs and exit status are gone", NULL, NULL},
    [ADVICE_SUSPEND_JOB] =
        {"suspend-job", "the holder's controller is a Job that is not suspended",
         "kubectl patch job -n <ns> <name> --type merge -p '{\"spec\":{\"suspend\":true}}'",
         "it stops all pods of the Job: what they have not saved is lost",
         "when the claim may be taken again, resume it",
         "kubectl patch job -n <ns> <name> --type merge -p '{\"spec\":{\"suspend\":false}}'"},
    [ADVICE_SUSPEND_CRON_JOB] =
        {"suspend-cron-job", "the holder's Job is of a CronJob, which would create another one",
         "kubectl patch cronjob -n <ns> <name> --type merge -p '{\"spec\":{\"suspend\":true}}'",
         "it creates no Jobs until it is resumed; those that run continue",
         "when the claim may be taken again, resume it; it may create a Job at once",
         "kubectl patch cronjob -n <ns> <name> --type merge -p '{\"spec\":{\"suspend\":false}}'"},
    [ADVICE_SCALE] = {"scale",
                      "the controller and its replicas are known; no other object manages it; no "
                      "HorizontalPodAutoscaler would scale it up again",
                      "kubectl scale -n <ns> <kind> <name> --replicas=<count>", "it stops <what>",
                      "when the claim may be taken again, scale it back",
                      "kubectl scale -n <ns> <kind> <name> --replicas=<before>"},
    [ADVICE_KEEP_CLAIMS] =
        {"keep-claims", "the StatefulSet has whenScaled: Delete, and is to be scaled down",
         "kubectl patch statefulset -n <ns> <name> --type merge -p "
         "'{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":\"Retain\"}}}'",
         NULL, "when the StatefulSet has all its pods again",
         "kubectl patch statefulset -n <ns> <name> --type merge -p "
         "'{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":\"Delete\"}}}'"},
    [ADVICE_RECREATE] =
        {"recreate",
         "a new pod of the Deployment waits for the claim of an old one, and the strategy is not "
         "Recreate",
         "kubectl patch deployment -n <ns> <name> --type merge -p "
         "'{\"spec\":{\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":null}}}'",
         "each rollout then stops all old pods first; maxSurge and maxUnavailable are removed",
         "each rollout of the Deployment waits for itself again after that",
         "kubectl patch deployment -n <ns> <name> --type merge -p "
         "'{\"spec\":{\"strategy\":{\"type\":\"RollingUpdate\"}}}'"},
    [ADVICE_OUT_OF_SERVICE] =
        {"out-of-service",
         "the node's Ready is Unknown: its kubelet does not answer. That the machine is off only "
         "you can know",
         "kubectl taint nodes <name> " OUT_OF_SERVICE_TAINT "=nodeshutdown:NoExecute",
         "it evicts every pod on node <name>, not only this one; data is damaged if a pod there "
         "still runs",
         "when the machine runs again, remove the taint: nothing else does",
         "kubectl taint nodes <name> " OUT_OF_SERVICE_TAINT "-"},
    [ADVICE_IN_SERVICE] = {"in-service", "the node has the taint",
                           "kubectl taint nodes <name> " OUT_OF_SERVICE_TAINT "-",
                           "pods are placed there again",
                           "if the machine is off, taint it again: claimguard who says how", NULL},
    [ADVICE_KEEP_VOLUME] =
        {"keep-volume",
         "the claim is being deleted and a pod still has it, or the volume is being deleted, or "
         "has "
         "to be made again, and its reclaim policy is not Retain",
         "kubectl patch pv <name> -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'",
         NULL, "when the volume is bound to a claim again, and its data may go with that",
         "kubectl patch pv <name> -p "
         "'{\"spec\":{\"persistentVolumeReclaimPolicy\":\"<before>\"}}'"},
    [ADVICE_RESERVE_VOLUME] =
        {"reserve-volume",
         "the claim names the volume, whose claimRef names an earlier claim of the same name and "
         "namespace",
         "kubectl patch pv <name> --type merge -p "
         "'{\"spec\":{\"claimRef\":{\"namespace\":\"<ns>\",\"name\":\"<claim>\",\"uid\":null,"
         "\"resourceVersion\":null}}}'",
         "the claim gets the volume with the data that is on it",
         "the volume keeps its data: with the reclaim policy Retain, delete the claim", NULL},
    [ADVICE_DELETE_LOST_CLAIM] = {"delete-lost-claim",
                                  "the claim was bound, and its volume is not there",
                                  "kubectl delete pvc -n <ns> <claim>",
                                  "a new claim is not bound to the old volume, nor to its data",
                                  NULL, NULL},
    [ADVICE_FORGET_NODE] =
        {"forget-node", "the claim has no volume, and the scheduler chose a node that is gone",
         "kubectl annotate pvc -n <ns> <claim> volume.kubernetes.io/selected-node-", NULL,
         "the scheduler writes the annotation again, with another node", NULL},
    [ADVICE_APPLY] = {"apply", "an object of claimguard's installation is not there",
                      ADVICE_TEXT_APPLY, NULL, "an object that was not there can be deleted", NULL},
    [ADVICE_APPLY_RIGHTS] = {"apply-rights", "claimguard lacks a right", ADVICE_TEXT_APPLY_RIGHTS,
                             NULL, "delete the ClusterRole's rules that were added", NULL},
    [ADVICE_SEE_OWNERS] =
        {.name = "see-owners",
         .needs = "the input does not have the pod's owners",
         .command = "kubectl get pod -n <ns> <name> -o jsonpath='{.metadata.ownerReferences}'"},
    [ADVICE_SEE_WORKLOAD] = {.name = "see-workload",
                             .needs = "the controller is not known, or another object manages it",
                             .command = "kubectl get -n <ns> <kind> <name> -o yaml"},
    [ADVICE_SEE_ROLLOUT] =
        {.name = "see-rollout",
         .needs =
             "Events say what this input does not have: which pod is old, or why there is none",
         .command = "kubectl describe -n <ns> <kind> <name>"},
    [ADVICE_SEE_POD] = {.name = "see-pod",
                        .needs = "Events of the pod say why its node does not mount a volume",
                        .command = "kubectl describe pod -n <ns> <name>"},
    [ADVICE_SEE_CLAIM] = {.name = "see-claim",
                          .needs = "Events of the claim say what this input does not have",
                          .command = "kubectl describe pvc -n <ns> <claim>"},
    [ADVICE_SEE_VOLUME] = {.name = "see-volume",
                           .needs = "the claim is Lost, or its volume is bound to another one",
                           .command = "kubectl get pv <name> -o yaml"},
    [ADVICE_SEE_CLAIM_OF_VOLUME] =
        {.name = "see-claim-of-volume",
         .needs = "a volume was asked for, and claims are what can be asked for",
         .command = "kubectl get pv <name> -o "
                    "jsonpath='{.spec.claimRef.namespace}/{.spec.claimRef.name}'"},
    [ADVICE_SEE_NODE] = {.name = "see-node",
                         .needs = "the node is not ready",
                         .command = "kubectl describe node <name>"},
    [ADVICE_SEE_DRIVERS] = {.name = "see-drivers",
                            .needs = "nodes lack the CSI driver of a volume",
                            .command = "kubectl get pods -A --field-selector spec.nodeName=<name>"},
    [ADVICE_SEE_ATTACHMENT] =
        {.name = "see-attachment",
         .needs = "the volume is being detached from a node, or attached to one that "
                  "does not answer",
         .command = "kubectl describe volumeattachment <name>"},
    [ADVICE_SEE_STATE] = {.name = "see-state",
                          .needs = "claimguard's Deployment has no pod",
                          .command = ADVICE_TEXT_STATE},
    [ADVICE_SEE_LOGS] = {.name = "see-logs",
                         .needs = "a container of claimguard has ended",
                         .command = ADVICE_TEXT_LOGS},
};

const struct advice_texts *advice_texts(enum advice_row row)
{
    return &table[row];
}

/* ---- words ---- */

static const struct {
    struct slice hole;
    size_t offset;
} holes[] = {
    {{"<ns>", 4}, offsetof(struct advice_words, ns)},
    {{"<kind>", 6}, offsetof(struct advice_words, kind)},
    {{"<name>", 6}, offsetof(struct advice_words, name)},
    {{"<claim>", 7}, offsetof(struct advice_words, claim)},
    {{"<count>", 7}, offsetof(struct advice_words, count)},
    {{"<before>", 8}, offsetof(struct advice_words, before)},
    {{"<what>", 6}, offsetof(struct advice_words, what)},
};

/* The word for the hole at the text's begin, whose length is set. NULL: there is none. */
static const struct slice *word_of(const char *text, const struct advice_words *words, size_t *len)
{
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++)
        if (strncmp(text, holes[i].hole.ptr, holes[i].hole.len) == 0) {
            *len = holes[i].hole.len;
            return (const void *)((const char *)words + holes[i].offset);
        }
    return NULL;
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

/* Appends the text with its holes filled. False: a word is not plain, and has to be. */
static bool fill(struct buf *out, const char *text, const struct advice_words *words, bool is_shell)
{
    const struct slice *word;
    size_t len;

    for (const char *hole; (hole = strchr(text, '<')) != NULL; text = hole + len) {
        buf_put(out, (struct slice){text, (size_t)(hole - text)});
        word = word_of(hole, words, &len);
        if (word == NULL || (is_shell && !is_plain(*word)))
            return false;
        buf_put(out, *word);
    }
    buf_put(out, slice_of(text));
    return true;
}

bool advice_command_text(struct buf *out, enum advice_row row, const struct advice_words *words)
{
    return fill(out, table[row].command, words, true) && !out->failed;
}

/* ---- lists ---- */

/* Adds the piece, which may be without a text: there was no memory for that. */
static void add_piece(struct advice_list *list, const struct advice_piece *piece)
{
    struct advice_piece *grown = arena_grow(list->arena, list->items, list->count, sizeof *grown);

    list->has_failed = list->has_failed || grown == NULL || piece->text.ptr == NULL;
    list->is_left_out = list->has_failed;
    if (list->has_failed)
        return;
    list->items = grown;
    grown[list->count++] = *piece;
}

void advice_list_vadd(struct advice_list *list, const char *format, va_list arguments)
{
    struct slice text = arena_vprintf(list->arena, format, arguments);

    if (list->is_else && list->count != 0 && text.ptr != NULL)
        text = arena_printf(list->arena, "else %.*s", SLICE_ARG(text));
    list->is_else = false;
    add_piece(list, &(struct advice_piece){.text = text});
}

void advice_list_add(struct advice_list *list, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    advice_list_vadd(list, format, arguments);
    va_end(arguments);
}

/* The text with its holes filled; empty: there is none, or a word of a command is not plain. */
static struct slice filled(struct advice_list *list, const char *text,
                           const struct advice_words *words, bool is_shell)
{
    struct slice kept = SLICE("");
    struct buf out;

    if (text == NULL)
        return kept;
    buf_init(&out, TEXT_BYTES_MAX);
    if (fill(&out, text, words, is_shell))
        kept = arena_copy(list->arena, buf_slice(&out));
    list->has_failed = list->has_failed || out.failed || kept.ptr == NULL;
    buf_dispose(&out);
    return kept;
}

static bool has_command(const struct advice_list *list, struct slice command)
{
    for (size_t i = 0; i < list->count; i++)
        if (command.len != 0 && slice_equal(list->items[i].command, command))
            return true;
    return false;
}

void advice_list_row(struct advice_list *list, enum advice_row row,
                     const struct advice_words *words)
{
    const struct advice_texts *texts = &table[row];

    if (list->is_left_out)
        return;
    struct slice command = filled(list, texts->command, words, true);
    if (has_command(list, command)) {
        list->count--;
        list->is_left_out = true;
        return;
    }
    struct advice_piece *last = &list->items[list->count - 1];
    last->row = texts->name;
    last->command = command;
    last->has_stops = texts->stops != NULL;
    if (last->has_stops)
        last->warning = filled(list, texts->stops, words, false);
    last->back = filled(list, texts->back, words, false);
    last->undo = filled(list, texts->undo, words, true);
}

void advice_list_warn(struct advice_list *list, const char *format, ...)
{
    va_list arguments;

    if (list->is_left_out)
        return;
    va_start(arguments, format);
    struct slice text = arena_vprintf(list->arena, format, arguments);
    va_end(arguments);
    struct slice *warning = &list->items[list->count - 1].warning;
    *warning = warning->len == 0
                   ? text
                   : arena_printf(list->arena, "%.*s; %.*s", SLICE_ARG(*warning), SLICE_ARG(text));
    list->has_failed = list->has_failed || text.ptr == NULL || warning->ptr == NULL;
}

void advice_list_stay(struct advice_list *list)
{
    if (list->is_left_out)
        return;
    list->items[list->count - 1].back = SLICE("");
    list->items[list->count - 1].undo = SLICE("");
}

struct advice_list advice_list_first(const struct advice_list *list)
{
    struct advice_list first = *list;

    for (first.count = 0; first.count < list->count;)
        if (list->items[first.count++].command.len != 0)
            break;
    return first;
}

static bool is_same(const struct advice_piece *a, const struct advice_piece *b)
{
    return a->row == b->row && slice_equal(a->text, b->text) &&
           slice_equal(a->command, b->command) && slice_equal(a->warning, b->warning) &&
           slice_equal(a->back, b->back) && slice_equal(a->undo, b->undo);
}

static bool is_repeated(const struct advice_list *list, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_same(&list->items[i], &list->items[index]))
            return true;
    return false;
}

void advice_list_leave_out_repeated(struct advice_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        list->items[kept] = list->items[i];
        kept += !is_repeated(list, kept);
    }
    list->count = kept;
}

void advice_list_append(struct advice_list *list, const struct advice_list *more)
{
    list->has_failed = list->has_failed || more->has_failed;
    for (size_t i = 0; i < more->count; i++)
        add_piece(list, &more->items[i]);
}

void advice_list_put(struct fields *out, const char *key, const struct advice_list *list)
{
    fields_open(out, key, '[');
    for (size_t i = 0; i < list->count; i++) {
        const struct advice_piece *piece = &list->items[i];
        fields_open(out, NULL, '{');
        fields_text(out, "text", piece->text);
        fields_text_if(out, "advice", slice_of(piece->row));
        fields_text_if(out, "command", piece->command);
        if (piece->has_stops)
            fields_text_if(out, "warning", piece->warning);
        fields_text_if(out, "back", piece->back);
        fields_text_if(out, "undo", piece->undo);
        if (!piece->has_stops)
            fields_text_if(out, "warning", piece->warning);
        fields_close(out);
    }
    fields_close(out);
    out->has_failed = out->has_failed || list->has_failed;
}
