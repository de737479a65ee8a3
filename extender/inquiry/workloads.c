#include "extender/inquiry/workloads.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cache/client/api_path.h"
#include "cache/store/uthash_config.h"
#include "config/base/clock.h"
#include "extender/certificates/api_call.h"

enum { WORKLOADS_BYTES_MAX = 512 << 20, PATH_BYTES_MAX = 8192 };

static const struct {
    const char *kind, *resource, *api;
    bool scales;
} kinds[] = {
    {"Deployment", "deployment", "/apis/apps/v1", true},
    {"StatefulSet", "statefulset", "/apis/apps/v1", true},
    {"ReplicaSet", "replicaset", "/apis/apps/v1", true},
    {"ReplicationController", "replicationcontroller", "/api/v1", true},
    {"Job", "job", "/apis/batch/v1", false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct entry {
    UT_hash_handle hh;
    struct slice key; /* "KIND NS/NAME"; of the HorizontalPodAutoscalers of a namespace, no NAME */
    struct workload_answer workload;
};

struct autoscaler {
    struct autoscaler *next;
    struct autoscaler_details details;
};

struct workloads {
    const struct kubeconfig *kubeconfig;
    struct autoscaler *autoscalers; /* they lie in the arena, and their texts */
    struct http_client *client;     /* NULL: nothing was read yet */
    struct entry *entries;          /* uthash; they lie in the arena */
    struct arena arena;             /* and their texts */
    struct arena scratch;           /* of the object that is read now */
    size_t reads;
    uint64_t forgotten_ns; /* all entries of a live cluster are younger */
    bool is_client_started;
};

struct workloads *workloads_new(const struct kubeconfig *kubeconfig)
{
    struct workloads *workloads = calloc(1, sizeof *workloads);

    if (workloads == NULL)
        return NULL;
    workloads->kubeconfig = kubeconfig;
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
    http_client_free(workloads->client);
    if (workloads->is_client_started)
        http_client_global_cleanup();
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

/* Index into kinds[]; KINDS: another kind. */
static size_t kind_index(struct slice kind)
{
    size_t i = 0;

    while (i < KINDS && !slice_equal(kind, slice_of(kinds[i].kind)))
        i++;
    return i;
}

/* "apps" of "apps/v1"; "" of "v1". */
static struct slice group_of(struct slice api_version)
{
    const char *slash = api_version.len == 0 ? NULL : memchr(api_version.ptr, '/', api_version.len);

    return slash == NULL ? SLICE("")
                         : (struct slice){api_version.ptr, (size_t)(slash - api_version.ptr)};
}

const char *workload_resource(struct slice api_version, struct slice kind)
{
    static const char apis[] = "/apis/";
    size_t index = kind_index(kind);

    if (index == KINDS)
        return NULL;
    bool has_group = strncmp(kinds[index].api, apis, sizeof apis - 1) == 0;
    struct slice group =
        has_group ? group_of(slice_of(kinds[index].api + sizeof apis - 1)) : SLICE("");
    return slice_equal(group, group_of(api_version)) ? kinds[index].resource : NULL;
}

bool workload_scales(struct slice kind)
{
    size_t index = kind_index(kind);

    return index != KINDS && kinds[index].scales;
}

/* ---- entries ---- */

static struct entry *find(const struct workloads *workloads, struct slice key)
{
    struct entry *found = NULL;

    HASH_FIND(hh, workloads->entries, key.ptr, key.len, found);
    return found;
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

/* The texts that are copied. */
static const size_t text_offsets[] = {
    offsetof(struct workload_details, strategy),
    offsetof(struct workload_details, when_scaled),
    offsetof(struct workload_details, revision),
    offsetof(struct workload_details, argo),
    offsetof(struct workload_details, flux),
    offsetof(struct workload_details, controller.kind),
    offsetof(struct workload_details, controller.name),
};
enum { TEXTS = sizeof text_offsets / sizeof *text_offsets };

static struct slice *text_at(struct workload_details *details, size_t index)
{
    return (struct slice *)(void *)((char *)details + text_offsets[index]);
}

/* Copies the texts. False: no memory. */
static bool store(struct workloads *workloads, const struct workload_details *read,
                  struct workload_answer *out)
{
    struct arena *arena = &workloads->arena;
    const struct claim_template *templates = read->claim_templates.items;
    size_t count = read->claim_templates.count;
    struct claim_template *copies = arena_alloc(arena, (count + 1) * sizeof *copies);
    bool is_whole = copies != NULL;

    out->details = *read;
    out->details.ns = out->details.name = SLICE(""); /* the key has them */
    for (size_t i = 0; is_whole && i < TEXTS; i++) {
        struct slice *text = text_at(&out->details, i);
        *text = arena_copy(arena, *text);
        is_whole = text->ptr != NULL;
    }
    for (size_t i = 0; is_whole && i < count; i++) {
        copies[i].name = arena_copy(arena, templates[i].name);
        is_whole = copies[i].name.ptr != NULL;
    }
    out->details.claim_templates.items = copies;
    out->state = WORKLOAD_KNOWN;
    return is_whole;
}

/* ---- HorizontalPodAutoscalers ---- */

/* False: no memory. */
static bool store_autoscaler(struct workloads *workloads, const struct autoscaler_details *read)
{
    struct arena *arena = &workloads->arena;
    struct autoscaler *autoscaler = arena_alloc(arena, sizeof *autoscaler);

    if (autoscaler == NULL)
        return false;
    *autoscaler =
        (struct autoscaler){workloads->autoscalers,
                            {arena_copy(arena, read->ns.len == 0 ? SLICE("default") : read->ns),
                             arena_copy(arena, read->name),
                             arena_copy(arena, read->target_kind),
                             arena_copy(arena, read->target),
                             read->least,
                             {.kind = arena_copy(arena, read->controller.kind),
                              .name = arena_copy(arena, read->controller.name)}}};
    workloads->autoscalers = autoscaler;
    return autoscaler->details.ns.ptr != NULL && autoscaler->details.name.ptr != NULL &&
           autoscaler->details.target_kind.ptr != NULL && autoscaler->details.target.ptr != NULL &&
           autoscaler->details.controller.kind.ptr != NULL &&
           autoscaler->details.controller.name.ptr != NULL;
}

static int take_autoscaler(struct workloads *workloads, struct slice text, struct error *err)
{
    struct autoscaler_details read;

    arena_reset(&workloads->scratch);
    if (!autoscaler_details_read(text, &workloads->scratch, &read))
        return 1;
    return store_autoscaler(workloads, &read) ? 1 : error_no_memory(err);
}

/* ---- a snapshot ---- */

int workloads_take(struct workloads *workloads, const struct source_text *text, struct error *err)
{
    struct slice kind = slice_of(text->type->kind);
    struct workload_details read;

    if (slice_equal(kind, SLICE(AUTOSCALER)))
        return take_autoscaler(workloads, text->text, err);
    if (kind_index(kind) == KINDS)
        return 0;
    arena_reset(&workloads->scratch);
    if (!workload_details_read(text->text, &workloads->scratch, &read))
        return 1;
    struct entry *entry =
        add(workloads, kind, read.ns.len == 0 ? SLICE("default") : read.ns, read.name);
    return entry != NULL && store(workloads, &read, &entry->workload) ? 1 : error_no_memory(err);
}

/* ---- a live cluster ---- */

static bool start_client(struct workloads *workloads, struct error *err)
{
    if (!workloads->is_client_started)
        workloads->is_client_started = http_client_global_init(err) == 0;
    return workloads->is_client_started &&
           (workloads->client != NULL ||
            http_client_new(&workloads->client, workloads->kubeconfig, err) == 0);
}

/* Sends a GET: of the list, if there is no name. WORKLOAD_KNOWN: the answer has a body. */
static enum workload_state get(struct workloads *workloads, const char *api_group,
                               const char *resource, struct slice ns, struct slice name,
                               struct slice *body)
{
    const struct object_reference reference = {.ns = ns, .name = name.len == 0 ? ns : name};
    struct request_answer answer = {.status = 0};
    struct error err;
    struct buf path;

    if (!object_reference_is_possible(&reference) || workloads->reads == WORKLOADS_READ_MAX ||
        !start_client(workloads, &err))
        return WORKLOAD_UNREADABLE;
    workloads->reads++;
    buf_init(&path, PATH_BYTES_MAX);
    buf_printf(&path, "%s/namespaces/", api_group);
    api_path_escape(&path, ns);
    buf_printf(&path, "/%ss%s", resource, name.len == 0 ? "?limit=500" : "/");
    api_path_escape(&path, name);
    struct api api = {.client = workloads->client,
                      .server = workloads->kubeconfig->server,
                      .arena = workloads->scratch};
    const struct request request = {.method = "GET", .path = buf_text(&path)};
    bool ok = request.path != NULL && api_call(&api, &request, &answer, &err) == 0;
    workloads->scratch = api.arena;
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

static void read_live(struct workloads *workloads, size_t kind, struct slice ns, struct slice name,
                      struct workload_answer *out)
{
    struct workload_details read;
    struct slice body;

    out->state = get(workloads, kinds[kind].api, kinds[kind].resource, ns, name, &body);
    if (out->state == WORKLOAD_KNOWN &&
        (!workload_details_read(body, &workloads->scratch, &read) || !store(workloads, &read, out)))
        out->state = WORKLOAD_UNREADABLE;
}

static enum workload_state list_autoscalers(struct workloads *workloads, struct slice ns)
{
    struct pull_items items;
    struct slice body;
    enum workload_state state =
        get(workloads, "/apis/autoscaling/v2", "horizontalpodautoscaler", ns, SLICE(""), &body);

    if (state != WORKLOAD_KNOWN)
        return state;
    if (!autoscaler_list_read(body, &workloads->scratch, &items))
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
    if (HASH_COUNT(workloads->entries) != count && workloads->kubeconfig != NULL)
        read_live(workloads, kind_index(kind), ns, name, &entry->workload);
    return &entry->workload;
}

const struct autoscaler_details *workloads_autoscaler(struct workloads *workloads, struct slice ns,
                                                      struct slice kind, struct slice name,
                                                      bool *is_known)
{
    size_t count = HASH_COUNT(workloads->entries);

    arena_reset(&workloads->scratch);
    struct entry *list = add(workloads, SLICE(AUTOSCALER), ns, SLICE(""));
    if (list != NULL && HASH_COUNT(workloads->entries) != count) {
        if (workloads->kubeconfig != NULL)
            list->workload.state = list_autoscalers(workloads, ns);
        else if (workloads->autoscalers != NULL) /* the snapshot has that kind */
            list->workload.state = WORKLOAD_KNOWN;
    }
    *is_known = list != NULL &&
                (list->workload.state == WORKLOAD_KNOWN || list->workload.state == WORKLOAD_GONE);
    for (const struct autoscaler *at = workloads->autoscalers; at != NULL; at = at->next)
        if (slice_equal(at->details.ns, ns) && slice_equal(at->details.target_kind, kind) &&
            slice_equal(at->details.target, name))
            return &at->details;
    return NULL;
}

bool workloads_unknown(const struct workloads *workloads,
                       bool (*visit)(void *context, struct slice key, enum workload_state state),
                       void *context)
{
    for (const struct entry *entry = workloads->entries; entry != NULL; entry = entry->hh.next)
        if (entry->workload.state != WORKLOAD_KNOWN && entry->workload.state != WORKLOAD_GONE &&
            !visit(context, entry->key, entry->workload.state))
            return false;
    return true;
}
