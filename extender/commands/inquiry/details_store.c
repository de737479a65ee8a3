#include "extender/commands/inquiry/details_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/snapshot/source.h"
#include "cache/store/table.h"
#include "cache/store/uthash_config.h"

enum {
    KEY_BYTES_MAX = 4096,
    FILES_MAX = 1 << 20,
    READ_ARENA_BYTES_MAX = 32 << 20,
    RECALLED_BYTES_MAX = 1 << 30,
};
#define OFFSET_MAX (UINT64_C(1) << 44)

/* Of one object: its JSON with the fields of details.h alone. */
struct kept {
    UT_hash_handle hh;
    size_t file; /* the number of files before its own */
    size_t key_len, text_len;
    bool is_checked;
    char bytes[]; /* the key, then the text; an empty text: the details are lost */
};

/* Where an object is. */
struct whereabouts {
    uint64_t file : 20; /* as in struct kept */
    uint64_t offset : 44;
    uint64_t hash; /* of its key: no other object has the same */
    uint32_t length;
};

struct details_store {
    size_t *lost;
    struct error *first;
    struct kept *kept; /* uthash */
    struct whereabouts *places;
    size_t place_count;
    bool is_sorted; /* the places: by hash, the later ones last */
    char **files;   /* the paths of all so far; the last one is read now */
    size_t file_count;
    size_t opened; /* the file of fd; fd < 0: none */
    int fd;
    struct buf key, projected, text;
    struct arena arena;    /* of the object that is read again */
    struct arena recalled; /* the texts of those so far */
};

struct details_store *details_store_new(size_t *lost, struct error *first)
{
    struct details_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->lost = lost;
    store->first = first;
    store->fd = -1;
    buf_init(&store->key, KEY_BYTES_MAX);
    buf_init(&store->projected, DETAILS_BYTES_MAX);
    buf_init(&store->text, INPUT_OBJECT_BYTES_MAX);
    arena_init(&store->arena, READ_ARENA_BYTES_MAX);
    arena_init(&store->recalled, RECALLED_BYTES_MAX);
    return store;
}

void details_store_free(struct details_store *store)
{
    struct kept *kept, *next;

    if (store == NULL)
        return;
    HASH_ITER (hh, store->kept, kept, next) {
        HASH_DEL(store->kept, kept);
        free(kept);
    }
    for (size_t i = 0; i < store->file_count; i++)
        free(store->files[i]);
    free((void *)store->files);
    free(store->places);
    if (store->fd >= 0)
        (void)close(store->fd); /* read only: nothing is lost */
    buf_dispose(&store->key);
    buf_dispose(&store->projected);
    buf_dispose(&store->text);
    arena_dispose(&store->arena);
    arena_dispose(&store->recalled);
    free(store);
}

/* The kind as a byte, and NS/NAME; {NULL, 0}: no such object. */
static struct slice key_of(struct details_store *store, enum kind kind, struct slice ns,
                           struct slice name)
{
    const char first = (char)('a' + (int)kind);

    buf_reset(&store->key, KEY_BYTES_MAX);
    buf_put(&store->key, (struct slice){&first, 1});
    if (kind_is_namespaced(kind))
        buf_put(&store->key, ns);
    buf_put(&store->key, SLICE("/"));
    buf_put(&store->key, name);
    return store->key.failed ? (struct slice){NULL, 0} : buf_slice(&store->key);
}

static uint64_t hash_of(struct slice key)
{
    return (uint64_t)table_hash(key, 0) << 32 | table_hash(key, 1);
}

/* ---- texts ---- */

static struct kept *find_kept(const struct details_store *store, struct slice key)
{
    struct kept *found = NULL;

    HASH_FIND(hh, store->kept, key.ptr, key.len, found);
    return found;
}

static void drop(struct details_store *store, struct kept *kept)
{
    *store->lost -= kept->text_len == 0;
    HASH_DEL(store->kept, kept);
    free(kept);
}

/* Replaces what was kept of an object with that key. An empty text: it is lost. NULL: no memory. */
static struct kept *keep(struct details_store *store, size_t file, struct slice key,
                         struct slice text)
{
    struct kept *known = find_kept(store, key);
    struct kept *kept = malloc(sizeof *kept + key.len + text.len);

    if (kept == NULL)
        return NULL;
    kept->file = file;
    kept->is_checked = false;
    kept->key_len = key.len;
    kept->text_len = text.len;
    memcpy(kept->bytes, key.ptr, key.len);
    if (text.len != 0)
        memcpy(kept->bytes + key.len, text.ptr, text.len);
    if (known != NULL)
        drop(store, known);
    HASH_ADD_KEYPTR(hh, store->kept, kept->bytes, kept->key_len, kept);
    if (kept->hh.tbl == NULL) {
        free(kept);
        return NULL;
    }
    *store->lost += text.len == 0;
    return kept;
}

/* Writes the details to store->projected. False: a problem, in json. */
static bool project(struct details_store *store, enum kind kind, struct slice text,
                    struct pull *json)
{
    const struct pull_tables tables = {{details_table(kind)}};

    buf_reset(&store->projected, DETAILS_BYTES_MAX);
    pull_init(json, text);
    return pull_project(json, &tables, &store->projected);
}

/* What any of the details is read into. */
union any_details {
    struct pod_details pod;
    struct claim_details claim;
    struct node_details node;
    struct volume_details volume;
    struct storage_class_details storage_class;
    struct csi_driver_details csi_driver;
    struct csi_node_details csi_node;
};

/* Whether the text can be read, so that who reads it knows of one error only. */
static bool check(struct details_store *store, enum kind kind, struct slice ns, struct slice name,
                  struct slice text)
{
    const struct pull_table table = details_table(kind);
    union any_details details = {.pod = {.grace_seconds = 0}};
    struct pull json;

    arena_reset(&store->arena);
    pull_init(&json, text);
    if (pull_fields(&json, PULL_CASE_EXACT, table.fields, table.count, &store->arena, &details) &&
        pull_finish(&json))
        return true;
    if (store->first->code == 0)
        (void)error_set(store->first, ERROR_INVALID, "%s %.*s%s%.*s: %s: %s", kind_text(kind),
                        SLICE_ARG(ns), ns.len == 0 ? "" : "/", SLICE_ARG(name), json.path,
                        json.problem == NULL ? "no problem" : json.problem);
    return false;
}

static int put_text(struct details_store *store, const struct source_text *text,
                    const struct object *object, struct slice key, struct error *err)
{
    struct pull json;

    if (!project(store, object->kind, text->text, &json))
        return pull_fail(&json, text->path == NULL ? kind_resource(object->kind) : text->path,
                         text->place, err);
    return keep(store, store->file_count, key,
                store->projected.failed ? SLICE("") : buf_slice(&store->projected)) == NULL
               ? error_no_memory(err)
               : 0;
}

/* ---- places ---- */

/* The file that is read now becomes the last one. */
static bool note_file(struct details_store *store, const char *path)
{
    if (path == NULL ||
        (store->file_count != 0 && strcmp(store->files[store->file_count - 1], path) == 0))
        return true;
    char **grown = array_grow((void *)store->files, store->file_count, sizeof *grown);
    if (grown == NULL)
        return false;
    store->files = grown;
    grown[store->file_count] = strdup(path);
    return grown[store->file_count] != NULL && ++store->file_count != 0;
}

static bool note_place(struct details_store *store, const struct source_text *text,
                       struct slice key)
{
    struct whereabouts *grown = array_grow(store->places, store->place_count, sizeof *grown);

    if (grown == NULL)
        return false;
    store->places = grown;
    grown[store->place_count++] = (struct whereabouts){
        .file = store->file_count & (FILES_MAX - 1),
        .offset = text->offset & (OFFSET_MAX - 1),
        .length = (uint32_t)text->text.len,
        .hash = hash_of(key),
    };
    store->is_sorted = false;
    return true;
}

int details_store_put(struct details_store *store, const struct source_text *text,
                      const struct object *object, struct error *err)
{
    struct slice key = key_of(store, object->kind, object->meta.ns, object->meta.name);

    if (key.ptr == NULL) {
        ++*store->lost;
        return 0;
    }
    if (!note_file(store, text->path))
        return error_no_memory(err);
    if (!text->is_in_file || store->file_count >= FILES_MAX || text->offset >= OFFSET_MAX)
        return put_text(store, text, object, key, err);
    return note_place(store, text, key) ? 0 : error_no_memory(err);
}

static int compare_places(const void *a, const void *b)
{
    const struct whereabouts *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The number of places with a smaller hash; or also with that one. */
static size_t count_below(struct details_store *store, uint64_t hash, bool is_inclusive)
{
    size_t low = 0, high = store->place_count;

    if (!store->is_sorted && store->place_count != 0)
        qsort(store->places, store->place_count, sizeof *store->places, compare_places);
    store->is_sorted = true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t other = store->places[middle].hash;
        if (other < hash || (is_inclusive && other == hash))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reads the text that is there now. */
static bool read_place(struct details_store *store, const struct whereabouts *place)
{
    size_t done = 0;

    if (store->fd < 0 || store->opened != place->file) {
        if (store->fd >= 0)
            (void)close(store->fd);
        store->opened = place->file;
        store->fd = open(store->files[place->file - 1], O_RDONLY | O_CLOEXEC);
    }
    buf_reset(&store->text, INPUT_WINDOW_BYTES);
    if (store->fd < 0 || !buf_reserve(&store->text, place->length))
        return false;
    while (done < place->length) {
        ssize_t count = pread(store->fd, store->text.bytes + done, place->length - done,
                              (off_t)(place->offset + done));
        if (count == 0 || (count < 0 && errno != EINTR))
            return false;
        done += count < 0 ? 0 : (size_t)count;
    }
    store->text.len = done;
    return true;
}

/* Whether it is still that object that is there. Its details are in store->projected then. */
static bool recall(struct details_store *store, const struct whereabouts *place, enum kind kind,
                   struct slice ns, struct slice name)
{
    struct object object;
    struct pull json;

    if (!read_place(store, place))
        return false;
    arena_reset(&store->arena);
    pull_init(&json, buf_slice(&store->text));
    return object_read(&json, kind, &store->arena, &object) &&
           slice_equal(object.meta.name, name) &&
           (!kind_is_namespaced(kind) || slice_equal(object.meta.ns, ns)) &&
           project(store, kind, buf_slice(&store->text), &json) && !store->projected.failed &&
           check(store, kind, ns, name, buf_slice(&store->projected));
}

/* The last of the places that have the object. {NULL, 0}: none has it any more. */
static struct slice recall_last(struct details_store *store, size_t first, size_t last,
                                enum kind kind, struct slice ns, struct slice name)
{
    while (last-- > first)
        if (recall(store, &store->places[last], kind, ns, name))
            return arena_copy(&store->recalled, buf_slice(&store->projected));
    return (struct slice){NULL, 0};
}

/* Its text, unless it cannot be read. */
static struct slice text_of(struct details_store *store, struct kept *kept, enum kind kind,
                            struct slice ns, struct slice name)
{
    struct slice text = {kept->bytes + kept->key_len, kept->text_len};

    if (text.len != 0 && !kept->is_checked && !check(store, kind, ns, name, text)) {
        kept->text_len = text.len = 0;
        ++*store->lost;
    }
    kept->is_checked = true;
    return text.len == 0 ? (struct slice){NULL, 0} : text;
}

struct slice details_store_find(struct details_store *store, enum kind kind, struct slice ns,
                                struct slice name)
{
    struct slice key = key_of(store, kind, ns, name), text = {NULL, 0};

    if (key.ptr == NULL)
        return text;
    struct kept *kept = find_kept(store, key);
    uint64_t hash = hash_of(key);
    size_t first = count_below(store, hash, false), last = count_below(store, hash, true);
    if (last > first && (kept == NULL || kept->file < store->places[last - 1].file)) {
        size_t file = store->places[last - 1].file;
        text = recall_last(store, first, last, kind, ns, name);
        if (text.ptr == NULL)
            (void)keep(store, file, key, SLICE(""));
    } else if (kept != NULL) {
        text = text_of(store, kept, kind, ns, name);
    }
    return text;
}

void details_store_drop(struct details_store *store, enum kind kind, struct slice ns,
                        struct slice name)
{
    struct slice key = key_of(store, kind, ns, name);
    struct kept *kept = key.ptr == NULL ? NULL : find_kept(store, key);

    if (kept != NULL)
        drop(store, kept);
}

void details_store_forget(struct details_store *store)
{
    arena_reset(&store->recalled);
}
