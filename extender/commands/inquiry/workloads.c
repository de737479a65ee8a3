#include "extender/commands/inquiry/workloads.h"

#include <stdlib.h>
#include <string.h>

#include "cache/client/api_path.h"
#include "cache/client/call.h"
#include "cache/store/uthash_config.h"
#include "config/base/clock.h"

enum { WORKLOADS_BYTES_MAX = 512 << 20, PATH_BYTES_MAX = 8192, GAPS_MAX = 5 };

static const enum kind kinds[] = {
    KIND_DEPLOYMENT, KIND_STATEFUL_SET, KIND_REPLICA_SET, KIND_REPLICATION_CONTROLLER,
    KIND_JOB,        KIND_DAEMON_SET,   KIND_CRON_JOB};
enum { KINDS = sizeof kinds / sizeof *kinds, CHANGED_KINDS = 5 /* the first ones */ };

struct entry {
    UT_hash_handle hh;
    struct slice key; /* "KIND NS/NAME"; of the HorizontalPodAutoscalers of a namespace, no NAME */
    struct workload_answer workload;
    bool matters; /* that it is not known is a gap */
};

struct autoscaler {
    struct autoscaler *next;
    struct autoscaler_details details;
};

struct workloads {
    const struct kubeconfig *kubeconfig;
    const unsigned *listed;         /* of a snapshot */
    struct autoscaler *autoscalers; /* they lie in the arena, and their texts */
    struct api api;                 /* client NULL: nothing was read yet */
    struct entry *entries;          /* uthash; they lie in the arena */
    struct arena arena;             /* and their texts */
    struct arena scratch;           /* of the object that is read now */
    size_t reads;
    uint64_t forgotten_ns; /* all entries of a live cluster are younger */
};

struct workloads *workloads_new(const struct kubeconfig *kubeconfig, const unsigned *listed)
{
    struct workloads *workloads = calloc(1, sizeof *workloads);

    if (workloads == NULL)
        return NULL;
    workloads->kubeconfig = kubeconfig;
    workloads->listed = listed;
    arena_init(&workloads->arena, WORKLOADS_BYTES_MAX);
    arena_init(&workloads->scratch, API_ARENA_BYTES_MAX);
    return workloads;
}

static void clear(struct workloads *workloads)
{
    HASH_CLEAR(hh, workloads->entries);
    workloads->autoscalers = NULL;
    arena_reset(&workloads->arena);
    workloads->reads = 0;
}

void workloads_free(struct workloads *workloads)
{
    if (workloads == NULL)
        return;
    clear(workloads);
    api_close(&workloads->api);
    arena_dispose(&workloads->arena);
    arena_dispose(&workloads->scratch);
    free(workloads);
}

void workloads_forget(struct workloads *workloads)
{
    uint64_t now_ns = monotonic_ns();

    if (workloads->kubeconfig == NULL ||
        now_ns - workloads->forgotten_ns < WORKLOADS_KEPT_MS * NS_PER_MS)
        return;
    clear(workloads);
    workloads->forgotten_ns = now_ns;
}

/* One of kinds[]; KIND_OTHER: another kind. */
static enum kind find_kind(struct slice kind, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(kind, slice_of(kind_text(kinds[i]))))
            return kinds[i];
    return KIND_OTHER;
}

struct slice workload_resource(struct slice api_version, struct slice kind)
{
    enum kind found = find_kind(kind, CHANGED_KINDS);
    struct slice resource = slice_of(kind_resource(found));

    if (found == KIND_OTHER || kind_of_any(api_version, kind) != found)
        return SLICE("");
    return (struct slice){resource.ptr, resource.len - 1}; /* without its 's' */
}

bool workload_scales(struct slice kind)
{
    enum kind found = find_kind(kind, CHANGED_KINDS);
    return found != KIND_OTHER && found != KIND_JOB;
}

/* ---- entries ---- */

static struct entry *find(const struct workloads *workloads, struct slice key)
{
    struct entry *found = NULL;

    HASH_FIND(hh, workloads->entries, key.ptr, key.len, found);
    return found;
}

/* Whether all objects of that kind that there were are in the snapshot. */
static bool has_all(const struct workloads *workloads, enum kind kind)
{
    return workloads->kubeconfig == NULL && (*workloads->listed & 1U << kind) != 0;
}

/* The entry with that key, perhaps a new one. NULL: no memory. */
static struct entry *add(struct workloads *workloads, struct slice kind, struct slice ns,
                         struct slice name)
{
    struct slice key = arena_printf(&workloads->scratch, "%.*s %.*s/%.*s", SLICE_ARG(kind),
                                    SLICE_ARG(ns), SLICE_ARG(name));
    struct entry *entry = key.ptr == NULL ? NULL : find(workloads, key);

    if (entry != NULL || key.ptr == NULL)
        return entry;
    entry = arena_alloc(&workloads->arena, sizeof *entry);
    key = arena_copy(&workloads->arena, key);
    if (entry == NULL || key.ptr == NULL)
        return NULL;
    *entry = (struct entry){.key = key, .workload.state = WORKLOAD_NOT_THERE};
    HASH_ADD_KEYPTR(hh, workloads->entries, entry->key.ptr, entry->key.len, entry);
    return entry->hh.tbl == NULL ? NULL : entry;
}

/* The text with only the fields that are read of that kind, in the arena. {NULL, 0}: no memory. */
static struct slice keep_fields(struct workloads *workloads, struct slice text, enum kind kind)
{
    const struct pull_tables tables = {{details_table(kind)}};
    struct pull json;
    struct buf fields;

    buf_init(&fields, WORKLOADS_BYTES_MAX);
    pull_init(&json, text);
    bool ok = pull_project(&json, &tables, &fields) && !fields.failed;
    struct slice kept = ok ? arena_copy(&workloads->arena, buf_slice(&fields)) : (struct slice){0};
    buf_dispose(&fields);
    return kept;
}

/* Keeps a workload that can be decoded. False: no memory. */
static bool store(struct workloads *workloads, struct slice text, struct workload_answer *out)
{
    struct slice kept = keep_fields(workloads, text, KIND_DEPLOYMENT);

    out->state = WORKLOAD_KNOWN;
    return kept.ptr != NULL && workload_details_read(kept, &workloads->arena, &out->details);
}

/* ---- HorizontalPodAutoscalers ---- */

/* Of details whose texts are in the arena. False: no memory. */
static bool store_autoscaler(struct workloads *workloads, const struct autoscaler_details *details)
{
    struct autoscaler *autoscaler = arena_alloc(&workloads->arena, sizeof *autoscaler);

    if (autoscaler == NULL)
        return false;
    *autoscaler = (struct autoscaler){workloads->autoscalers, *details};
    if (details->ns.len == 0)
        autoscaler->details.ns = SLICE("default");
    workloads->autoscalers = autoscaler;
    return true;
}

static int take_autoscaler(struct workloads *workloads, struct slice text, struct error *err)
{
    struct autoscaler_details read;

    arena_reset(&workloads->scratch);
    if (!autoscaler_details_read(text, &workloads->scratch, &read))
        return 1;
    struct slice kept = keep_fields(workloads, text, KIND_AUTOSCALER);
    return kept.ptr != NULL && autoscaler_details_read(kept, &workloads->arena, &read) &&
                   store_autoscaler(workloads, &read)
               ? 1
               : error_no_memory(err);
}

/* ---- a snapshot ---- */

int workloads_take(struct workloads *workloads, const struct source_text *text, struct error *err)
{
    struct slice kind = slice_of(text->type->kind);
    enum kind found = kind_of_any(slice_of(text->type->api_version), kind);
    struct workload_details read;

    if (found == KIND_AUTOSCALER)
        return take_autoscaler(workloads, text->text, err);
    if (found == KIND_OTHER || find_kind(kind, KINDS) != found)
        return 0;
    arena_reset(&workloads->scratch);
    if (!workload_details_read(text->text, &workloads->scratch, &read))
        return 1;
    struct entry *entry =
        add(workloads, kind, read.ns.len == 0 ? SLICE("default") : read.ns, read.name);
    return entry != NULL && store(workloads, text->text, &entry->workload) ? 1
                                                                           : error_no_memory(err);
}

/* ---- a live cluster ---- */

static bool open_api(struct workloads *workloads, struct error *err)
{
    if (workloads->api.client != NULL || api_open(&workloads->api, workloads->kubeconfig, err) == 0)
        return true;
    api_close(&workloads->api);
    workloads->api = (struct api){.client = NULL};
    return false;
}

/* Sends a GET: of the list, if there is no name. WORKLOAD_KNOWN: the answer has a body. */
static enum workload_state get(struct workloads *workloads, enum kind kind, struct slice ns,
                               struct slice name, struct slice *body)
{
    const struct object_reference reference = {.ns = ns, .name = name.len == 0 ? ns : name};
    struct request_answer answer = {.status = 0};
    struct error err;
    struct buf path;

    if (!object_reference_is_possible(&reference) || workloads->reads == WORKLOADS_READ_MAX ||
        !open_api(workloads, &err))
        return WORKLOAD_UNREADABLE;
    workloads->reads++;
    buf_init(&path, PATH_BYTES_MAX);
    buf_printf(&path, "%s/namespaces/", kind_api_path(kind));
    api_path_escape(&path, ns);
    buf_printf(&path, "/%s%s", kind_resource(kind), name.len == 0 ? "?limit=500" : "/");
    api_path_escape(&path, name);
    const char *text = buf_text(&path);
    arena_reset(&workloads->api.arena);
    bool ok = text != NULL && api_get(&workloads->api, text, &answer, &err) == 0;
    buf_dispose(&path);
    if (!ok)
        workloads->reads = WORKLOADS_READ_MAX; /* it would not answer the next one either */
    *body = answer.body;
    return !ok || (answer.status != 200 && answer.status != 403 && answer.status != 404)
               ? WORKLOAD_UNREADABLE
           : answer.status == 403 ? WORKLOAD_FORBIDDEN
           : answer.status == 404 ? WORKLOAD_GONE
                                  : WORKLOAD_KNOWN;
}

static void read_live(struct workloads *workloads, enum kind kind, struct slice ns,
                      struct slice name, struct workload_answer *out)
{
    struct workload_details read;
    struct slice body;

    out->state = get(workloads, kind, ns, name, &body);
    if (out->state == WORKLOAD_KNOWN &&
        (!workload_details_read(body, &workloads->scratch, &read) || !store(workloads, body, out)))
        out->state = WORKLOAD_UNREADABLE;
}

static enum workload_state list_autoscalers(struct workloads *workloads, struct slice ns)
{
    struct pull_items items;
    struct slice body;
    enum workload_state state = get(workloads, KIND_AUTOSCALER, ns, SLICE(""), &body);

    if (state != WORKLOAD_KNOWN)
        return state;
    body = arena_copy(&workloads->arena, body);
    if (body.ptr == NULL || !autoscaler_list_read(body, &workloads->arena, &items))
        return WORKLOAD_UNREADABLE;
    const struct autoscaler_details *autoscalers = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (!store_autoscaler(workloads, &autoscalers[i]))
            return WORKLOAD_UNREADABLE;
    return WORKLOAD_KNOWN;
}

const struct workload_answer *workloads_find(struct workloads *workloads, struct slice kind,
                                             struct slice ns, struct slice name)
{
    size_t count = HASH_COUNT(workloads->entries);

    arena_reset(&workloads->scratch);
    struct entry *entry = add(workloads, kind, ns, name);
    if (entry == NULL)
        return NULL;
    entry->matters = true;
    enum kind found = find_kind(kind, KINDS);
    if (HASH_COUNT(workloads->entries) != count && workloads->kubeconfig != NULL)
        read_live(workloads, found, ns, name, &entry->workload);
    else if (entry->workload.state == WORKLOAD_NOT_THERE && has_all(workloads, found))
        entry->workload.state = WORKLOAD_GONE;
    return &entry->workload;
}

const struct autoscaler_details *workloads_autoscaler(struct workloads *workloads, struct slice ns,
                                                      struct slice kind, struct slice name,
                                                      bool *is_known)
{
    size_t count = HASH_COUNT(workloads->entries);

    arena_reset(&workloads->scratch);
    struct entry *list = add(workloads, slice_of(kind_text(KIND_AUTOSCALER)), ns, SLICE(""));
    if (list != NULL && HASH_COUNT(workloads->entries) != count) {
        if (workloads->kubeconfig != NULL)
            list->workload.state = list_autoscalers(workloads, ns);
        else if (workloads->autoscalers != NULL || has_all(workloads, KIND_AUTOSCALER))
            list->workload.state = WORKLOAD_KNOWN;
    }
    if (is_known != NULL) {
        *is_known = list != NULL && (list->workload.state == WORKLOAD_KNOWN ||
                                     list->workload.state == WORKLOAD_GONE);
        if (list != NULL)
            list->matters = true;
    }
    for (const struct autoscaler *at = workloads->autoscalers; at != NULL; at = at->next)
        if (slice_equal(at->details.ns, ns) && slice_equal(at->details.target_kind, kind) &&
            slice_equal(at->details.target, name))
            return &at->details;
    return NULL;
}

/* ---- gaps ---- */

static void add_gap(struct gaps *gaps, const struct entry *entry)
{
    static const char *const reasons[] = {
        [WORKLOAD_NOT_THERE] = "the snapshot does not have it",
        [WORKLOAD_FORBIDDEN] = "these credentials may not read it",
        [WORKLOAD_UNREADABLE] = "it was not read",
    };
    static const char *const list_reasons[] = {
        [WORKLOAD_NOT_THERE] = "the snapshot has none",
        [WORKLOAD_FORBIDDEN] = "these credentials may not list them",
        [WORKLOAD_UNREADABLE] = "they were not read",
    };
    struct slice key = entry->key;
    const char *space = memchr(key.ptr, ' ', key.len);
    int kind_len = (int)(space - key.ptr), ns_len = (int)key.len - kind_len - 2;
    bool is_list = key.ptr[key.len - 1] == '/'; /* of a namespace, without a name */

    if (is_list)
        gaps_add(gaps, 0, "%.*ss of namespace %.*s: %s", kind_len, key.ptr, ns_len, space + 1,
                 list_reasons[entry->workload.state]);
    else
        gaps_add(gaps, 0, "%.*s: %s", SLICE_ARG(key), reasons[entry->workload.state]);
}

void workloads_add_gaps(const struct workloads *workloads, struct gaps *gaps)
{
    size_t count = 0;

    for (const struct entry *entry = workloads->entries; entry != NULL; entry = entry->hh.next)
        if (entry->matters && entry->workload.state != WORKLOAD_KNOWN &&
            entry->workload.state != WORKLOAD_GONE && count++ < GAPS_MAX)
            add_gap(gaps, entry);
    if (count > GAPS_MAX)
        gaps_add(gaps, 0, "%zu more such objects", count - GAPS_MAX);
}
