/*
 * claimguard dry-run: the verdicts that the server would give, for pods of a snapshot or a
 * manifest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/base/text.h"
#include "config/config.h"
#include "extender/cli/commands.h"
#include "extender/commands/inquiry/places.h"
#include "extender/report/explain.h"
#include "extender/serving/bind/deferral.h"

enum {
    DRY_RUN_ARENA_BYTES_MAX = 64 * 1024 * 1024,
    ORPHANS_BYTES_MAX = 256 * 1024 * 1024,
    TEXTS_BYTES_MAX = 1 << 30,
};

struct dry_run {
    struct inquiry inquiry; /* of the snapshot */
    struct places places;
    struct arena texts; /* of these */
    struct config *config;
    struct slice *nodes; /* their names, sorted if they are from the snapshot */
    size_t node_count;
    enum output_format format;
    struct render *render;
    const char *snapshot;                    /* its path */
    const char *warnings[LOAD_WARNINGS_MAX]; /* of the snapshot */
    size_t warning_count;
    bool all_schedulable;
};

/* The nodes to check: those of --node, or all nodes of the snapshot. */
static int choose_nodes(struct dry_run *run, const struct arguments *arguments, struct error *err)
{
    size_t most = arguments->name_count + run->inquiry.cluster.counts[KIND_NODE];

    run->nodes = calloc(most + 1, sizeof *run->nodes);
    if (run->nodes == NULL)
        return error_no_memory(err);
    for (size_t i = 0; i < arguments->name_count; i++) {
        struct slice name = slice_of(arguments->names[i]);
        if (cluster_find_node(&run->inquiry.cluster, name) == NULL)
            return error_set(err, ERROR_NOT_FOUND, "--node %s: no such node in %s",
                             arguments->names[i], arguments->snapshot);
        run->nodes[run->node_count++] = name;
    }
    if (arguments->name_count != 0)
        return 0;
    struct table_walk walk = {.at = 0};
    for (const struct node *node; (node = cluster_next_node(&run->inquiry.cluster, &walk)) != NULL;)
        if (node->exists)
            run->nodes[run->node_count++] = name_slice(node->name);
    qsort(run->nodes, run->node_count, sizeof *run->nodes, slice_order);
    return 0;
}

/* Adds what is assumed about this pod, and about the snapshot, to the warnings. */
static void add_assumptions(const struct dry_run *run, struct slice warning,
                            struct slice out[static LOAD_WARNINGS_MAX + 1],
                            struct explained *explained)
{
    explained->assumptions = out;
    if (warning.len != 0)
        out[explained->assumption_count++] = warning;
    for (size_t i = 0; i < run->warning_count; i++)
        out[explained->assumption_count++] = slice_of(run->warnings[i]);
}

static void show_snapshot_warning(const struct dry_run *run, const char *warning)
{
    (void)fprintf(stderr, "claimguard: %s: %s\n", run->snapshot, warning);
}

/* Prints a warning about the pod to stderr, for a table has no column for it. */
static bool show_warning(const struct pod_object *pod, struct slice warning)
{
    char *line = NULL;

    if (warning.len == 0)
        return true;
    if (asprintf(&line, "claimguard: %.*s/%.*s: %.*s", SLICE_ARG(pod->meta.ns),
                 SLICE_ARG(pod->meta.name), SLICE_ARG(warning)) < 0)
        return false;
    make_printable(line);
    (void)fprintf(stderr, "%s\n", line);
    free(line);
    return true;
}

/* Explains and prints the verdict on one pod. warning: about this pod; empty: none. */
static int evaluate(struct dry_run *run, const struct pod_object *pod, struct slice warning,
                    struct arena *arena, struct error *err)
{
    struct placement placement;
    struct view view = {
        .cluster = &run->inquiry.cluster, .config = run->config, .placement = &placement};
    struct explained_nodes nodes = {run->nodes, run->node_count, run->format != OUTPUT_TABLE};
    struct slice assumptions[LOAD_WARNINGS_MAX + 1];
    struct explained explained;
    bool is_data = run->format == OUTPUT_JSON || run->format == OUTPUT_YAML;

    if (!places_find(&run->places, pod, arena, &placement) ||
        !explain_pod(&explained, &view, pod, &nodes, arena) ||
        (!is_data && !show_warning(pod, warning)))
        return error_no_memory(err);
    if (is_data)
        add_assumptions(run, warning, assumptions, &explained);
    run->all_schedulable = run->all_schedulable && explained_is_schedulable(&explained);
    return command_printed(render_put(run->render, &explained), err);
}

/* What is to know about a pod of the snapshot; empty: nothing. */
static struct slice note(const struct pod *pod, struct arena *arena)
{
    if (pod->is_terminal)
        return SLICE("it is finished: no scheduler asks about it");
    if (pod_is_assigned(pod))
        return arena_printf(arena, "it is on node %.*s already: no scheduler asks about it",
                            SLICE_ARG(pod_node(pod)));
    if (pod->is_gated)
        return SLICE("it has scheduling gates: no scheduler asks about it yet");
    return pod->has_no_priority
               ? SLICE("its PriorityClass is not in the snapshot: priority 0 is assumed")
               : SLICE("");
}

static int evaluate_cached(struct dry_run *run, const struct pod *pod, struct error *err)
{
    struct arena arena;
    struct pod_object object;

    arena_init(&arena, DRY_RUN_ARENA_BYTES_MAX);
    struct slice warning = note(pod, &arena);
    int rc = warning.ptr != NULL && cluster_describe_pod(pod, &arena, &object)
                 ? evaluate(run, &object, warning, &arena, err)
                 : error_no_memory(err);
    arena_dispose(&arena);
    return rc;
}

static int compare_pods(const void *a, const void *b)
{
    const struct pod *const *x = a, *const *y = b;
    int order = slice_compare(name_text((*x)->ns), name_text((*y)->ns));
    return order != 0 ? order : slice_compare(pod_name(*x), pod_name(*y));
}

/* ns: only of this namespace; NULL: of all. */
static int evaluate_pending(struct dry_run *run, const char *ns, struct error *err)
{
    const struct pod **pods = calloc(run->inquiry.cluster.counts[KIND_POD] + 1, sizeof *pods);
    size_t count = 0;
    struct table_walk walk = {.at = 0};
    int rc = 0;

    if (pods == NULL)
        return error_no_memory(err);
    for (const struct pod *pod; (pod = cluster_next_pod(&run->inquiry.cluster, &walk)) != NULL;)
        if (!pod_is_assigned(pod) && !pod->is_terminal &&
            (ns == NULL || slice_equal(name_text(pod->ns), slice_of(ns))))
            pods[count++] = pod;
    qsort((void *)pods, count, sizeof *pods, compare_pods);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = evaluate_cached(run, pods[i], err);
    free((void *)pods);
    return rc;
}

/* ---- a pod of a file ---- */

struct pod_file {
    struct dry_run *run;
    const char *path;
    size_t pods;
};

/* Adds a warning of the snapshot that its own pods have not given rise to. */
static void warn_of_drivers(struct dry_run *run)
{
    for (size_t i = 0; i < run->warning_count; i++)
        if (run->warnings[i] == load_no_drivers)
            return;
    run->warnings[run->warning_count++] = load_no_drivers;
    show_snapshot_warning(run, load_no_drivers);
}

/* Sets the priority of a manifest, which admission at the API server would do. */
static int evaluate_manifest(struct dry_run *run, struct pod_object pod, struct arena *arena,
                             struct error *err)
{
    struct slice warning = {"", 0};
    struct priority_class class;
    bool is_known = priority_class_find(&run->inquiry.cluster, pod.priority_class, &class);

    if (!pod.has_priority && !is_known)
        warning = arena_printf(arena,
                               "there is no PriorityClass \"%.*s\" in the snapshot: priority 0 is "
                               "assumed",
                               SLICE_ARG(pod.priority_class));
    if (class.never_preempts && pod.preemption_policy.len == 0 &&
        (!pod.has_priority || pod.priority_class.len != 0))
        pod.preemption_policy = SLICE("Never");
    if (!pod.has_priority)
        pod.priority = class.value;
    if (load_lacks_drivers(&run->inquiry.cluster, pod.mounts))
        warn_of_drivers(run);
    return warning.ptr == NULL ? error_no_memory(err) : evaluate(run, &pod, warning, arena, err);
}

static int take_pod(void *context, const struct object *object, struct error *err)
{
    struct pod_file *file = context;
    struct arena arena;

    if (object->kind != KIND_POD)
        return 0;
    if (file->pods++ != 0)
        return error_set(err, ERROR_INVALID, "%s: more than one Pod", file->path);
    arena_init(&arena, DRY_RUN_ARENA_BYTES_MAX);
    int rc = evaluate_manifest(file->run, object->pod, &arena, err);
    arena_dispose(&arena);
    return rc;
}

static int evaluate_file(struct dry_run *run, const char *path, struct error *err)
{
    struct pod_file file = {run, path, 0};
    struct source_report report;

    if (source_read(&(struct source){.path = path, .sink = take_pod, .context = &file}, &report,
                    err) < 0)
        return err->code;
    if (file.pods != 0)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%s: contains no Pod (for a Deployment or a Job, give its template as a Pod)",
                     strcmp(path, "-") == 0 ? "<stdin>" : path);
}

/* The pod NS/NAME of the snapshot, or NAME of the namespace ns if that is not NULL. */
static const struct pod *find_pod(const struct dry_run *run, const char *ns, const char *name)
{
    const char *slash = strchr(name, '/');

    if (slash == NULL)
        return ns == NULL ? NULL
                          : cluster_find_pod(&run->inquiry.cluster, slice_of(ns), slice_of(name));
    return cluster_find_pod(&run->inquiry.cluster, (struct slice){name, (size_t)(slash - name)},
                            slice_of(slash + 1));
}

/* Evaluates a pod of the snapshot; if there is none, the pod of that file. */
static int evaluate_named(struct dry_run *run, const char *ns, const char *name, struct error *err)
{
    const struct pod *pod = find_pod(run, ns, name);

    if (pod != NULL && ns != NULL && !slice_equal(name_text(pod->ns), slice_of(ns)))
        return error_set(err, ERROR_INVALID, "--pod %s is not in --namespace %s", name, ns);
    if (pod != NULL)
        return evaluate_cached(run, pod, err);
    if (evaluate_file(run, name, err) < 0)
        return err->code != ERROR_SYSTEM ? err->code
                                         : error_set(err, ERROR_NOT_FOUND,
                                                     "--pod %s: no pod of the snapshot (NS/NAME, "
                                                     "such as default/web-0; or NAME "
                                                     "with --namespace) and no file has this name",
                                                     name);
    return 0;
}

static int check_arguments(const struct arguments *arguments, enum output_format *format,
                           struct error *err)
{
    const char *problem = NULL;

    if (arguments->snapshot == NULL)
        problem = "--snapshot is missing";
    else if (arguments->pod == NULL && !arguments->all_pending)
        problem = "give --pod or --all-pending";
    else if (arguments->pod != NULL && arguments->all_pending)
        problem = "--pod and --all-pending: give only one of them";
    else if (arguments->output != NULL &&
             !output_format_parse(format, arguments->output, OUTPUTS_PLAIN | 1U << OUTPUT_WIDE))
        problem = "--output: expected table, wide, json or yaml";
    else if (arguments->pod != NULL && strcmp(arguments->pod, "-") == 0 &&
             strcmp(arguments->snapshot, "-") == 0)
        problem = "only one of --snapshot and --pod can be standard input";
    return problem == NULL ? 0 : command_misused("dry-run", problem, err);
}

/* Keeps the line breaks. */
static void make_lines_printable(char *lines)
{
    for (char *line = lines, *end; line != NULL; line = end == NULL ? NULL : end + 1) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        make_printable(line);
        if (end != NULL)
            *end = '\n';
    }
}

/* Prints the deferred volumes without an entry: their pods must be restarted before the CSI plugin
 * is downgraded (docs/deferfsmount.md). */
static void show_orphans(const struct dry_run *run)
{
    struct view view = {.cluster = &run->inquiry.cluster, .config = run->config};
    struct buf lines;

    buf_init(&lines, ORPHANS_BYTES_MAX);
    size_t count = deferral_orphans(&view, SIZE_MAX, &lines);
    if (count != 0 && buf_text(&lines) != NULL) {
        make_lines_printable(lines.bytes);
        (void)fprintf(
            stderr,
            "claimguard: %s: deferred volumes without an entry: %zu; restart their pods before "
            "the CSI plugin is downgraded:\n%s",
            run->snapshot, count, lines.bytes);
    }
    buf_dispose(&lines);
}

/* Prints notes about the whole snapshot to stderr, because standard output is for the results. */
static void show_notes(struct dry_run *run)
{
    const struct load_report *report = &run->inquiry.report;

    run->warning_count = load_warnings(&run->inquiry.cluster, report, run->warnings);
    if (report->source.skipped != 0)
        (void)fprintf(stderr, "claimguard: %s: skipped %zu object%s of other kinds\n",
                      run->snapshot, report->source.skipped,
                      report->source.skipped == 1 ? "" : "s");
    for (size_t i = 0; i < run->warning_count; i++)
        show_snapshot_warning(run, run->warnings[i]);
    show_orphans(run);
}

/* Prints what verdicts would have read, and could not. */
static void show_gaps(struct dry_run *run)
{
    struct gaps gaps = {.arena = &run->texts};

    inquiry_add_object_gaps(&run->inquiry, &gaps);
    for (size_t i = 0; i < gaps.count; i++)
        (void)fprintf(stderr, "claimguard: %s: not known: %.*s\n", run->snapshot,
                      SLICE_ARG(gaps.items[i].text));
}

/* What places.h reads. */
static bool keeps(void *context, const struct object *object)
{
    (void)context;
    return object->kind == KIND_NODE || object->kind == KIND_CLAIM || object->kind == KIND_VOLUME ||
           object->kind == KIND_STORAGE_CLASS || object->kind == KIND_CSI_DRIVER ||
           object->kind == KIND_CSI_NODE;
}

static int run_all(struct dry_run *run, const struct arguments *arguments, struct error *err)
{
    const struct inquiry_wish wish = {.keeps = keeps};

    if (inquiry_read(&run->inquiry, &wish, err) < 0 || choose_nodes(run, arguments, err) < 0)
        return err->code;
    show_notes(run);
    run->render = render_new(run->format, arguments->all_pending);
    if (run->render == NULL)
        return error_no_memory(err);
    int rc = arguments->all_pending ? evaluate_pending(run, arguments->ns, err)
                                    : evaluate_named(run, arguments->ns, arguments->pod, err);
    if (rc < 0) {
        render_discard(run->render);
        return rc;
    }
    show_gaps(run);
    return command_printed(render_finish(run->render), err);
}

int command_dry_run(const struct arguments *arguments, struct error *err)
{
    struct dry_run run = {.snapshot = arguments->snapshot, .all_schedulable = true};

    int rc = check_arguments(arguments, &run.format, err);
    if (rc < 0)
        return rc;
    rc = inquiry_open(&run.inquiry, &(struct inquiry_origin){.snapshot = arguments->snapshot}, err);
    arena_init(&run.texts, TEXTS_BYTES_MAX);
    run.places = (struct places){.inquiry = &run.inquiry, .arena = &run.texts};
    if (rc == 0)
        rc = config_load(&run.config, arguments->config, err);
    if (rc == 0)
        rc = run_all(&run, arguments, err);
    free(run.nodes);
    arena_dispose(&run.texts);
    inquiry_close(&run.inquiry);
    config_free(run.config);
    if (rc < 0)
        return rc;
    return run.all_schedulable ? EXIT_DONE : EXIT_NO;
}
