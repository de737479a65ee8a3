#include "extender/cli/audit_input.h"

#include "extender/inquiry/inquiry.h"

static int take_text(void *context, const struct source_text *text, const struct object *object,
                     struct error *err)
{
    struct audit_input *input = context;
    int used = inventory_take(input->inventory, text, err);

    (void)object;
    input->report->objects += used > 0;
    if (text->path != NULL || (used != ERROR_INVALID && used != ERROR_TOO_BIG))
        return used;
    input->left_out++; /* one object of a live cluster must not end the audit */
    *err = (struct error){0};
    return 0;
}

/* ---- files ---- */

static int read_path(struct audit_input *input, const char *path, struct error *err)
{
    struct source source = {.path = path,
                            .text_sink = take_text,
                            .context = input,
                            .wants_places = true,
                            .skips_foreign = true};
    struct source_report report;
    struct load_progress progress;

    load_progress_begin(&progress, &source);
    int rc = source_read(&source, &report, err);
    load_progress_end(&progress);
    if (rc < 0)
        return rc;
    input->report->skipped += report.skipped;
    if (report.objects != 0 || report.skipped != 0)
        return 0;
    return error_set(err, ERROR_INVALID, "%s: contains no Kubernetes object",
                     strcmp(path, "-") == 0 ? "<stdin>" : path);
}

int audit_read_files(struct audit_input *input, const struct arguments *arguments,
                     struct error *err)
{
    int rc = 0;

    if (arguments->snapshot != NULL)
        rc = read_path(input, arguments->snapshot, err);
    for (int i = 0; i < arguments->operand_count && rc == 0; i++)
        rc = read_path(input, arguments->operands[i], err);
    return rc;
}

/* ---- a live cluster ---- */

/* Kinds that an inquiry knows. */
static const struct stored_kind {
    enum kind kind;
    enum record_kind record;
} stored_kinds[] = {
    {KIND_POD, RECORD_POD},
    {KIND_NODE, RECORD_NODE},
    {KIND_CLAIM, RECORD_CLAIM},
    {KIND_VOLUME, RECORD_VOLUME},
    {KIND_STORAGE_CLASS, RECORD_STORAGE_CLASS},
    {KIND_CSI_DRIVER, RECORD_CSI_DRIVER},
    {KIND_CSI_NODE, RECORD_CSI_NODE},
    {KIND_VOLUME_ATTRIBUTES_CLASS, RECORD_ATTRIBUTES_CLASS},
};
enum { STORED_KINDS = sizeof stored_kinds / sizeof *stored_kinds };

/* The others, and what their lack means. The webhooks have no record. */
static const struct text_resource resources[] = {
    {"apps/v1", "Deployment", "deployments", false},
    {"apps/v1", "StatefulSet", "statefulsets", false},
    {"apps/v1", "DaemonSet", "daemonsets", false},
    {"apps/v1", "ReplicaSet", "replicasets", false},
    {"batch/v1", "Job", "jobs", false},
    {"batch/v1", "CronJob", "cronjobs", false},
    {"autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", false},
    {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
     "validatingwebhookconfigurations", true},
};
enum { RESOURCES = sizeof resources / sizeof *resources };

static void forget_list(void *context, const char *api_version, const char *kind)
{
    struct audit_input *input = context;
    enum record_kind record = record_kind_of(slice_of(kind));

    (void)api_version;
    if (record != RECORD_KIND_COUNT)
        inventory_forget(input->inventory, record);
}

static void put_gap(struct audit_report *report, enum gap gap, const char *resource)
{
    if (gap == GAP_FORBIDDEN)
        audit_report_gap(report, "%s: these credentials may not list them", resource);
}

/* Sets which kinds the inventory has in full, and adds the gaps. */
static void put_gaps(struct audit_input *input, const struct inquiry *inquiry)
{
    for (size_t i = 0; i < STORED_KINDS; i++) {
        enum gap gap = inquiry->gaps[stored_kinds[i].kind];
        input->inventory->is_listed[stored_kinds[i].record] = gap == GAP_NONE;
        put_gap(input->report, gap, kind_resource(stored_kinds[i].kind));
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        enum record_kind record = record_kind_of(slice_of(resources[i].kind));
        if (record != RECORD_KIND_COUNT)
            input->inventory->is_listed[record] = inquiry->resource_gaps[i] == GAP_NONE;
        put_gap(input->report, inquiry->resource_gaps[i], resources[i].resource);
    }
    if (input->left_out + inquiry->left_out != 0)
        audit_report_gap(input->report, "objects that could not be decoded were left out: %zu",
                         input->left_out + (size_t)inquiry->left_out);
}

int audit_read_live(struct audit_input *input, const struct arguments *arguments, struct error *err)
{
    struct inquiry_origin origin = {.kubeconfig = arguments->kubeconfig,
                                    .context = arguments->context};
    struct inquiry_wish wish = {.ns = slice_of(arguments->ns),
                                .text_sink = take_text,
                                .context = input,
                                .resources = resources,
                                .resource_count = RESOURCES,
                                .list_begins = forget_list,
                                .is_texts_only = true};
    struct inquiry inquiry;

    for (size_t i = 0; i < STORED_KINDS; i++)
        wish.kinds |= 1U << stored_kinds[i].kind;
    int rc = inquiry_open(&inquiry, &origin, err);
    if (rc == 0)
        rc = inquiry_read(&inquiry, &wish, err);
    if (rc == 0)
        put_gaps(input, &inquiry);
    inquiry_close(&inquiry);
    return rc;
}
