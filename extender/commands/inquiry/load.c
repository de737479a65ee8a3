#include "extender/commands/inquiry/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster.h"
#include "cache/cluster/reservation.h"
#include "config/base/clock.h"
#include "config/base/text.h"

enum {
    PROGRESS_MS = 100,
    PATH_SHOWN_MAX = 48,       /* of a path in a line that is overwritten */
    OWN_BYTES_MAX = 256 << 20, /* of reservations: 10,000 of 512 claims have names for less */
};

static long elapsed_ms(const struct load_progress *progress)
{
    return (long)((monotonic_ns() - progress->started_ns) / NS_PER_MS);
}

bool load_progress_is_due(struct load_progress *progress)
{
    long ms = progress->is_shown ? elapsed_ms(progress) : 0;

    if (ms < progress->shown_ms + PROGRESS_MS)
        return false;
    progress->shown_ms = ms;
    return true;
}

static void show_progress(void *context, const struct source_report *report)
{
    struct load_progress *progress = context;
    long ms = elapsed_ms(progress);
    double mib = (double)report->bytes_read / (1024 * 1024);
    char path[PATH_SHOWN_MAX];

    if (!load_progress_is_due(progress))
        return;
    (void)snprintf(path, sizeof path, "%s", report->path);
    make_printable(path);
    (void)fprintf(stderr, "\rloading %s: %.0f MiB", path, mib);
    if (report->bytes_total != 0)
        (void)fprintf(stderr, " (%.0f %%)",
                      100 * (double)report->bytes_read / (double)report->bytes_total);
    (void)fprintf(stderr, ", %zu objects, %.0f MiB/s \033[K", report->objects,
                  mib * 1000 / (double)ms);
}

void load_progress_begin(struct load_progress *progress, struct source *source)
{
    *progress =
        (struct load_progress){.is_shown = isatty(STDERR_FILENO), .started_ns = monotonic_ns()};
    if (source == NULL)
        return;
    source->progress = progress->is_shown ? show_progress : NULL;
    source->progress_context = progress;
}

void load_progress_say(struct load_progress *progress, const char *what, const char *path)
{
    char shown[PATH_SHOWN_MAX];

    if (!progress->is_shown)
        return;
    (void)snprintf(shown, sizeof shown, "%s", path);
    make_printable(shown);
    progress->shown_ms = elapsed_ms(progress) + 1; /* never 0 */
    (void)fprintf(stderr, "\r%s %s \033[K", what, shown);
}

void load_progress_end(const struct load_progress *progress)
{
    if (progress->shown_ms != 0)
        (void)fprintf(stderr, "\r\033[K");
}

/* ---- priorities ---- */

/* A pod of the snapshot that has no priority. In a real cluster, the API server sets it. */
struct unclassed {
    struct unclassed *next;
    struct object_reference pod;
    struct slice class;
    bool has_policy; /* the pod has a preemptionPolicy */
    char text[];     /* the strings of pod and class */
};

/* A reservation of the snapshot, or a namespace that was given up. */
struct own {
    struct own_object *object;
    struct own *next;
};

struct loading {
    struct cluster *cluster;
    const struct load_texts *texts;
    struct load_report *report;
    struct unclassed *unclassed;
    struct arena arena;
    struct own *first, **last; /* in the file's order */
};

static bool remember(struct loading *loading, const struct pod_object *pod)
{
    struct object_reference reference = {
        .kind = KIND_POD, .ns = pod->meta.ns, .name = pod->meta.name};
    size_t bytes = object_reference_bytes(&reference);
    struct unclassed *unclassed = malloc(sizeof *unclassed + bytes + pod->priority_class.len);

    if (unclassed == NULL)
        return false;
    unclassed->pod = object_reference_copy(&reference, unclassed->text);
    unclassed->class = (struct slice){unclassed->text + bytes, pod->priority_class.len};
    if (pod->priority_class.len != 0)
        memcpy(unclassed->text + bytes, pod->priority_class.ptr, pod->priority_class.len);
    unclassed->has_policy = pod->preemption_policy.len != 0;
    unclassed->next = loading->unclassed;
    loading->unclassed = unclassed;
    return true;
}

/* Sets the priority of the pod, after all objects were read. False if there is no such class. */
static bool classify(const struct cluster *cluster, const struct unclassed *unclassed)
{
    struct pod *pod = cluster_find_pod(cluster, unclassed->pod.ns, unclassed->pod.name);
    struct priority_class class;
    bool is_known = priority_class_find(cluster, unclassed->class, &class);

    if (pod == NULL)
        return true;
    pod->has_no_priority = !is_known;
    pod->priority = class.value;
    if (!unclassed->has_policy)
        pod->never_preempts = class.never_preempts;
    return is_known;
}

/* Sets the missing priorities, unless reading failed, and frees the list. False if a class is
 * missing. */
static bool finish_loading(struct loading *loading, bool is_good)
{
    bool are_known = true;

    for (struct unclassed *unclassed = loading->unclassed, *next; unclassed != NULL;
         unclassed = next) {
        next = unclassed->next;
        if (is_good && !classify(loading->cluster, unclassed))
            are_known = false;
        free(unclassed);
    }
    return are_known;
}

/* ---- loading ---- */

static int keep(void *context, const struct object *object, struct error *err)
{
    struct loading *loading = context;

    if (object->kind == KIND_POD && !object->pod.has_priority && !remember(loading, &object->pod))
        return error_no_memory(err);
    return cluster_apply(loading->cluster, object, err);
}

static int pass_on(void *context, const struct source_text *text, const struct object *object,
                   struct error *err)
{
    const struct loading *loading = context;
    return loading->texts->sink(loading->texts->context, text, object, err);
}

/* A resource that is not served; or of which all objects are there. */
static void note_resource(struct loading *loading, const struct own_object *object)
{
    bool is_listed = object->kind == OWN_LISTED_RESOURCE;

    if (is_listed && slice_equal(object->meta.name, SLICE(OWN_RESERVATIONS)))
        loading->report->is_of_claimguard = true;
    for (int kind = 0; kind < KIND_NAMED_COUNT; kind++)
        if (!slice_equal(object->meta.name, slice_of(kind_resource((enum kind)kind))))
            continue;
        else if (is_listed)
            loading->report->listed |= 1U << kind;
        else if (kind < KIND_COUNT)
            loading->cluster->is_unserved[kind] = true;
}

/* These are restored when all pods and claims are known. */
static int keep_own(void *context, const struct own_object *object, struct error *err)
{
    struct loading *loading = context;

    if (object->kind != OWN_RESERVATION && object->kind != OWN_NAMESPACE_GIVEN_UP) {
        note_resource(loading, object);
        return 0;
    }
    struct own *own = arena_alloc(&loading->arena, sizeof *own);
    if (own == NULL)
        return error_no_memory(err);
    own->next = NULL;
    own->object = own_object_copy(object, &loading->arena);
    if (own->object == NULL)
        return error_no_memory(err);
    *loading->last = own;
    loading->last = &own->next;
    return 0;
}

static int restore(const struct loading *loading, struct error *err)
{
    uint64_t now_ns = monotonic_ns();
    int rc = 0;

    for (const struct own *own = loading->first; rc == 0 && own != NULL; own = own->next)
        if (own->object->kind == OWN_RESERVATION)
            rc = reservation_restore(loading->cluster, own->object, now_ns, err);
        else if (!allowance_restore(loading->cluster, own->object->meta.name))
            rc = error_no_memory(err);
    return rc;
}

/* Fails if the snapshot has no object, because it is probably the wrong file. */
static int check_objects(const char *path, const struct source_report *report, struct error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;

    if (report->objects != 0)
        return 0;
    return report->skipped == 0
               ? error_set(err, ERROR_INVALID, "%s: contains no Kubernetes object", name)
               : error_set(err, ERROR_INVALID,
                           "%s: contains only objects of kinds that claimguard does not use (%zu)",
                           name, report->skipped);
}

int load_snapshot(struct cluster *cluster, const char *path, const struct load_texts *texts,
                  struct load_report *report, struct error *err)
{
    struct load_progress progress;
    struct loading loading = {
        .cluster = cluster, .texts = texts, .report = report, .last = &loading.first};
    struct source source = {.path = path,
                            .sink = keep,
                            .text_sink = texts == NULL ? NULL : pass_on,
                            .own_sink = keep_own,
                            .context = &loading};

    *report = (struct load_report){.listed = 0};
    load_progress_begin(&progress, &source);
    arena_init(&loading.arena, OWN_BYTES_MAX);
    int rc = source_read(&source, &report->source, err);
    report->lacks_classes = !finish_loading(&loading, rc == 0);
    if (rc == 0)
        rc = restore(&loading, err);
    arena_dispose(&loading.arena);
    load_progress_end(&progress);
    return rc < 0 ? rc : check_objects(path, &report->source, err);
}

static bool names_attributes_class(const struct cluster *cluster)
{
    const struct claim_tally *tally;
    struct table_walk walk = {.at = 0};

    while ((tally = table_next(&cluster->tallies, &walk)) != NULL)
        if (tally->key.volume_attributes_class != NULL)
            return true;
    return false;
}

const char load_no_drivers[] = "pods have inline CSI volumes, and the snapshot has no CSIDrivers: "
                               "add csidrivers to kubectl get";

bool load_lacks_drivers(const struct cluster *cluster, const struct pod_mounts *mounts)
{
    return cluster->counts[KIND_CSI_DRIVER] == 0 && mounts != NULL && mounts_have_inline(mounts);
}

/* Only of pods that wait for a node are the mounts stored. */
static bool a_pod_lacks_drivers(const struct cluster *cluster)
{
    const struct pod *pod;
    struct table_walk walk = {.at = 0};

    while ((pod = cluster_next_pod(cluster, &walk)) != NULL)
        if (!pod_is_assigned(pod) && load_lacks_drivers(cluster, pod_mounts(pod)))
            return true;
    return false;
}

size_t load_warnings(const struct cluster *cluster, const struct load_report *report,
                     const char *warnings[LOAD_WARNINGS_MAX])
{
    size_t count = 0;

    /* pods name claims, but there is none: probably they are not in the snapshot */
    if (cluster->counts[KIND_CLAIM] == 0 && cluster->claims.count != 0)
        warnings[count++] = "the snapshot has no PersistentVolumeClaims: add pvc to kubectl get";
    if (cluster->counts[KIND_NODE] == 0)
        warnings[count++] =
            "the snapshot has no Nodes, so nominated pods do not count, and no node "
            "is checked: add nodes to kubectl get";
    if (cluster->counts[KIND_VOLUME_ATTRIBUTES_CLASS] == 0 &&
        !cluster->is_unserved[KIND_VOLUME_ATTRIBUTES_CLASS] && names_attributes_class(cluster))
        warnings[count++] = "claims name VolumeAttributesClasses, and the snapshot has none: add "
                            "volumeattributesclasses to kubectl get";
    if (cluster->counts[KIND_CSI_DRIVER] == 0 && a_pod_lacks_drivers(cluster))
        warnings[count++] = load_no_drivers;
    if (report->lacks_classes)
        warnings[count++] =
            cluster->counts[KIND_PRIORITY_CLASS] != 0
                ? "pods name PriorityClasses that the snapshot does not have; priority 0 is assumed"
                : "pods name PriorityClasses that the snapshot does not have; priority 0 is "
                  "assumed: "
                  "add priorityclasses to kubectl get";
    if (report->source.unreadable != 0)
        warnings[count++] =
            "pods with over 512 claims are left out; claims that they hold may look "
            "free";
    if (cluster->namespaces_given_up != 0)
        warnings[count++] = "claimguard has given namespaces up, as their objects take too much "
                            "memory: pods, claims and budgets of these may be missing";
    return count;
}
