/* What a test says to the API server, and what it asks about the requests that came. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/api_server_internal.h"

void api_let_go(void)
{
    api_lock();
    api.let_go++;
    api_unlock();
}

void api_note(const struct api_request_seen *request)
{
    struct api_record *grown = realloc(api.records, (api.record_count + 1) * sizeof *api.records);

    if (grown == NULL)
        api_die("no memory");
    api.records = grown;
    api.records[api.record_count++] = (struct api_record){
        strdup(request->head.method), strdup(request->head.target), strdup(request->body)};
}

static bool is_such(const struct api_record *record, const char *method, const char *text)
{
    return strcmp(record->method, method) == 0 &&
           (strstr(record->target, text) != NULL || strstr(record->body, text) != NULL);
}

static size_t count_records(const char *method, const char *text)
{
    size_t count = 0;

    for (size_t i = 0; i < api.record_count; i++)
        count += is_such(&api.records[i], method, text);
    return count;
}

size_t api_place(const char *method, const char *text)
{
    api_lock();
    size_t i = 0;
    while (i < api.record_count && !is_such(&api.records[i], method, text))
        i++;
    size_t place = i == api.record_count ? SIZE_MAX : i;
    api_unlock();
    return place;
}

size_t api_count(const char *method, const char *text)
{
    api_lock();
    size_t count = count_records(method, text);
    api_unlock();
    return count;
}

bool api_wait(const char *method, const char *text, size_t count)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    api_lock();
    int rc = 0;
    while (count_records(method, text) < count && rc == 0)
        rc = pthread_cond_timedwait(&api.changed, &api.mutex, &until);
    bool came = count_records(method, text) >= count;
    api_unlock();
    return came;
}

size_t api_connections_max(void)
{
    api_lock();
    size_t most = api.connections_max;
    api_unlock();
    return most;
}

size_t api_connections_ever(void)
{
    api_lock();
    size_t count = api.connections_ever;
    api_unlock();
    return count;
}

static bool has(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

/* The fault that hits the request. Under the mutex. False: none. */
bool api_find_fault(const struct api_request_seen *request, struct api_fault *out)
{
    for (size_t i = api.fault_count; i-- > 0;) {
        const struct api_fault *fault = &api.faults[i];
        bool matches =
            (fault->method == NULL || strcmp(fault->method, request->head.method) == 0) &&
            has(request->head.target, fault->path) && has(request->body, fault->body);
        if (!matches || (fault->times != 0 && api.hits[i] >= fault->skip + fault->times))
            continue;
        if (api.hits[i]++ < fault->skip)
            continue;
        *out = *fault;
        return true;
    }
    return false;
}

/* Whether a requeue may take the place of the request that is meant. */
static bool is_too_wide(const struct api_fault *fault)
{
    return fault->times != 0 && fault->body == NULL && fault->method != NULL &&
           strcmp(fault->method, "PATCH") == 0 && fault->path != NULL &&
           strstr(fault->path, "/pods/") != NULL;
}

void api_fault(const struct api_fault *fault)
{
    if (is_too_wide(fault))
        api_die("a fault of some PATCHes of a pod needs a part of their body");
    api_lock();
    if (api.fault_count == FAULTS_MAX)
        api_die("too many faults");
    api.hits[api.fault_count] = 0;
    api.faults[api.fault_count++] = *fault;
    api_unlock();
}

void api_heal(void)
{
    api_lock();
    api.fault_count = 0;
    api_unlock();
}

/* ---- objects ---- */

void api_put(const char *format, ...)
{
    va_list arguments;
    json_error_t error;
    char *text = NULL;

    va_start(arguments, format);
    int rc = vasprintf(&text, format, arguments);
    va_end(arguments);
    json_t *object = rc < 0 ? NULL : json_loads(text, JSON_ALLOW_NUL, &error);
    if (object == NULL) {
        (void)fprintf(stderr, "api_put: %s: %s\n", rc < 0 ? "no memory" : error.text, text);
        abort();
    }
    free(text);
    api_lock();
    api_store_put(&api.store, object);
    api_unlock();
}

void api_remove(const char *resource, const char *ns, const char *name)
{
    api_lock();
    bool was_there = api_store_remove(&api.store, resource, ns, name);
    api_unlock();
    if (!was_there)
        api_die("api_remove: there is none");
}

const char *api_object(const char *resource, const char *ns, const char *name)
{
    api_lock();
    const json_t *object = api_store_find(&api.store, resource, ns, name);
    const char *text = object == NULL ? "null" : json_dumps(object, JSON_COMPACT);
    api_unlock();
    return text;
}

const char *api_text(const char *resource, const char *ns, const char *name, const char *path)
{
    api_lock();
    const json_t *at = api_store_find(&api.store, resource, ns, name);
    char key[128];

    for (const char *p = path; *p != '\0' && at != NULL; p += *p == '.') {
        size_t len = strcspn(p, ".");
        (void)snprintf(key, sizeof key, "%.*s", (int)len, p);
        for (char *c = key; *c != '\0'; c++) /* "claimguard~io/holder": a key with dots */
            *c = *c == '~' ? '.' : *c;
        at = json_object_get(at, key);
        p += len;
    }
    const char *text = json_string_value(at);
    text = text == NULL ? "" : strdup(text);
    api_unlock();
    return text;
}

void api_hold(const char *resource)
{
    api_lock();
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] == NULL) {
            api.held[i] = resource;
            break;
        }
    api_unlock();
}

void api_release(const char *resource)
{
    api_lock();
    for (size_t i = 0; i < RESOURCES_MAX; i++)
        if (api.held[i] != NULL && strcmp(api.held[i], resource) == 0)
            api.held[i] = NULL;
    api_unlock();
}

void api_send_line(const char *resource, const char *line)
{
    api_lock();
    api_store_add_line(&api.store, resource, line, true);
    api_unlock();
}

void api_log_line(const char *resource, const char *line)
{
    api_lock();
    api_store_add_line(&api.store, resource, line, false);
    api_unlock();
}

void api_cut(const char *resource)
{
    api_lock();
    api_watched_of(resource)->cuts++;
    api_unlock();
}

size_t api_watches(const char *resource)
{
    api_lock();
    size_t count = api_watched_of(resource)->open;
    api_unlock();
    return count;
}

void api_compact(void)
{
    api_lock();
    api.store.oldest = ++api.store.version;
    api_unlock();
}

void api_serve_pages(void)
{
    api_lock();
    api.store.serves_pages = true;
    api_unlock();
}

void api_set_field(enum api_field field)
{
    api_lock();
    api.store.field = field;
    api_unlock();
}
