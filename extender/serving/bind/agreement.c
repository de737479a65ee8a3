#include "extender/serving/bind/agreement.h"

#include <stdio.h>

#include "cache/json/pull_fields.h"

#define LOCK_KEY  "claimLock."
#define CLASS_KEY "exclusive."
#define IN_FORCE  "in force"

enum { BODY_ARENA_BYTES_MAX = 1 << 20, LOCK_KINDS = 2 };

/* What is left is for classes of former configurations. */
_Static_assert(EXCLUSIVE_CLASSES_MAX + LOCK_KINDS <= AGREEMENT_ENTRIES_MAX, "they fit");
_Static_assert(EXCLUSIVE_CLASS_LEN_MAX == AGREEMENT_KEY_MAX - (sizeof CLASS_KEY - 1), "it fits");

static int other_lock(int claim_lock)
{
    return claim_lock == CLAIM_LOCK_LOCAL ? CLAIM_LOCK_ANNOTATION : CLAIM_LOCK_LOCAL;
}

static const struct agreement_entry *find(const struct agreement *agreement, const char *prefix,
                                          struct slice name)
{
    size_t prefix_len = strlen(prefix);

    for (size_t i = 0; i < agreement->count; i++) {
        const struct agreement_entry *entry = &agreement->lists[agreement->present][i];
        if (strncmp(entry->key, prefix, prefix_len) == 0 &&
            slice_equal(slice_of(entry->key + prefix_len), name))
            return entry;
    }
    return NULL;
}

static const struct agreement_entry *find_lock(const struct agreement *agreement, int claim_lock)
{
    return find(agreement, LOCK_KEY, slice_of(config_claim_lock_text(claim_lock)));
}

/* Whether it has been as it is for so long. */
static bool is_old(const struct agreement_entry *entry, uint64_t ms, uint64_t now_ns)
{
    return entry != NULL && now_ns - entry->since_ns >= ms * NS_PER_MS;
}

static bool is_in_force(const struct agreement_entry *entry)
{
    return entry != NULL && entry->is_in_force;
}

/* ---- what was read ---- */

struct config_map {
    struct slice kind, name, version, data;
};

static bool read_config_map(struct slice body, struct arena *arena, struct config_map *out)
{
    static const struct pull_field meta[] = {
        PULL_FIELD("name", PULL_STRING, config_map, name),
        PULL_FIELD("resourceVersion", PULL_STRING, config_map, version),
    };
    static const struct pull_field fields[] = {
        PULL_FIELD("kind", PULL_STRING, config_map, kind),
        PULL_NESTED("metadata", meta),
        PULL_FIELD("data", PULL_RAW, config_map, data),
    };

    return pull_fields_of(body, fields, PULL_FIELD_COUNT(fields), arena, out) &&
           slice_equal(out->kind, SLICE("ConfigMap")) &&
           slice_equal(out->name, SLICE(AGREEMENT_NAME)) && out->version.len != 0 &&
           out->version.len < sizeof((struct agreement *)NULL)->version;
}

static bool begins_with(struct slice text, struct slice prefix)
{
    return text.len > prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

static bool is_ours(struct slice key)
{
    return key.len <= AGREEMENT_KEY_MAX &&
           (begins_with(key, SLICE(LOCK_KEY)) || begins_with(key, SLICE(CLASS_KEY)));
}

static void keep(const struct agreement *agreement, struct agreement_entry *entry, struct slice key,
                 struct slice value, uint64_t now_ns)
{
    (void)snprintf(entry->key, sizeof entry->key, "%.*s", SLICE_ARG(key));
    (void)snprintf(entry->value, sizeof entry->value, "%.*s", SLICE_ARG(value));
    entry->is_in_force = slice_equal(value, SLICE(IN_FORCE));
    const struct agreement_entry *before = find(agreement, "", key);
    entry->since_ns =
        before != NULL && strcmp(before->value, entry->value) == 0 ? before->since_ns : now_ns;
}

/* False: there are too many, or it is no object of texts. */
static bool read_entries(const struct agreement *agreement, struct slice data, struct arena *arena,
                         uint64_t now_ns, struct agreement_entry *entries, size_t *count)
{
    struct pull json;
    struct slice key;

    *count = 0;
    if (data.ptr == NULL)
        return true;
    pull_init(&json, data);
    if (!pull_object(&json))
        return false;
    while (pull_key(&json, &key)) {
        struct slice value = {"", 0}, name = arena_copy(arena, key);
        if (name.ptr == NULL || !pull_string(&json, arena, &value))
            return false;
        if (!is_ours(name))
            continue;
        if (*count == AGREEMENT_ENTRIES_MAX)
            return false;
        keep(agreement, &entries[(*count)++], name, value, now_ns);
    }
    return pull_finish(&json);
}

static bool differ(const struct agreement *agreement, const struct agreement_entry *entries,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct agreement_entry *entry = &entries[i], *before;
        before = find(agreement, "", slice_of(entry->key));
        if (before == NULL || !slice_equal(slice_of(before->value), slice_of(entry->value)))
            return true;
    }
    return count != agreement->count;
}

/* What policies see. */
static void list_classes(struct agreement *agreement)
{
    size_t count = 0;

    for (size_t i = 0; i < agreement->count; i++) {
        const struct agreement_entry *entry = &agreement->lists[agreement->present][i];
        if (begins_with(slice_of(entry->key), SLICE(CLASS_KEY)))
            agreement->items[count++] = (struct agreed_class){
                slice_of(entry->key + sizeof CLASS_KEY - 1), entry->is_in_force};
    }
    agreement->classes = (struct agreed_classes){agreement->items, count};
}

bool agreement_take(struct agreement *agreement, struct slice body, uint64_t began_ns,
                    uint64_t now_ns, bool *has_changed)
{
    unsigned next = 1 - agreement->present;
    struct config_map map = {.kind = {NULL, 0}};
    SCOPED_ARENA(arena, BODY_ARENA_BYTES_MAX);
    size_t count = 0;

    if (!read_config_map(body, &arena, &map) ||
        !read_entries(agreement, map.data, &arena, now_ns, agreement->lists[next], &count))
        return false;
    *has_changed = agreement->began_ns != 0 && differ(agreement, agreement->lists[next], count);
    (void)snprintf(agreement->version, sizeof agreement->version, "%.*s", SLICE_ARG(map.version));
    agreement->present = next;
    agreement->count = count;
    agreement->began_ns = began_ns;
    agreement->is_absent = false;
    list_classes(agreement);
    return true;
}

void agreement_miss(struct agreement *agreement)
{
    agreement->is_absent = agreement->began_ns == 0;
}

/* ---- what is written ---- */

/* Adds an entry to the patch, or removes it (value NULL). */
static void put(struct buf *patch, const struct agreement *agreement, const char *prefix,
                struct slice name, const char *value)
{
    char key[AGREEMENT_KEY_MAX + sizeof CLASS_KEY];

    (void)snprintf(key, sizeof key, "%s%.*s", prefix, SLICE_ARG(name));
    if (patch->len == 0) {
        buf_put(patch, SLICE("{\"metadata\":{\"resourceVersion\":"));
        buf_json(patch, slice_of(agreement->version));
        buf_put(patch, SLICE("},\"data\":{"));
    } else {
        buf_put(patch, SLICE(","));
    }
    buf_json(patch, slice_of(key));
    buf_put(patch, SLICE(":"));
    if (value == NULL)
        buf_put(patch, SLICE("null"));
    else
        buf_json(patch, slice_of(value));
}

/* What this claimguard's kind of lock becomes; NULL: it stays as it is. */
static const char *advance_lock(const struct agreement *agreement, int claim_lock,
                                const char *announced, uint64_t now_ns)
{
    const struct agreement_entry *own = find_lock(agreement, claim_lock);
    const struct agreement_entry *other = find_lock(agreement, other_lock(claim_lock));
    bool is_first = agreement->seen_lock != claim_lock + 1;

    if (own == NULL && other == NULL)
        return claim_lock == CLAIM_LOCK_LOCAL ? IN_FORCE : announced;
    if (own == NULL)
        return (other->is_in_force && is_first) || is_old(other, AGREEMENT_DISPLACED_MS, now_ns)
                   ? announced
                   : NULL;
    if (own->is_in_force) /* both are: somebody has written that */
        return is_in_force(other) ? announced : NULL;
    return is_old(own, AGREEMENT_MS, now_ns) ? IN_FORCE : NULL;
}

/* Whether the other kind goes, while this one becomes that. */
static bool removes_other(const struct agreement *agreement, int claim_lock, const char *becomes,
                          uint64_t now_ns)
{
    const struct agreement_entry *other = find_lock(agreement, other_lock(claim_lock));

    if (other == NULL)
        return false;
    if (becomes != NULL && strcmp(becomes, IN_FORCE) == 0)
        return true;
    return !other->is_in_force && (is_old(other, AGREEMENT_DISPLACED_MS, now_ns) ||
                                   strcmp(other->value, agreement->announced) == 0);
}

static void propose_lock(struct agreement *agreement, int claim_lock, const char *announced,
                         uint64_t now_ns, struct buf *patch)
{
    const char *becomes = advance_lock(agreement, claim_lock, announced, now_ns);

    if (find_lock(agreement, claim_lock) != NULL)
        agreement->seen_lock = claim_lock + 1;
    else if (agreement->count == AGREEMENT_ENTRIES_MAX)
        becomes = NULL; /* nobody could read it any more */
    if (becomes != NULL)
        put(patch, agreement, LOCK_KEY, slice_of(config_claim_lock_text(claim_lock)), becomes);
    if (removes_other(agreement, claim_lock, becomes, now_ns))
        put(patch, agreement, LOCK_KEY, slice_of(config_claim_lock_text(other_lock(claim_lock))),
            NULL);
    if (becomes == announced)
        (void)snprintf(agreement->announced, sizeof agreement->announced, "%s", announced);
}

/* How many classes may be added: both kinds of lock still have to fit. */
static size_t room_for_classes(const struct agreement *agreement)
{
    size_t locks = 0, most = AGREEMENT_ENTRIES_MAX - LOCK_KINDS;

    for (int kind = 0; kind < LOCK_KINDS; kind++)
        locks += find_lock(agreement, kind) != NULL;
    return agreement->count - locks < most ? most - (agreement->count - locks) : 0;
}

static void propose_class(const struct agreement *agreement, struct slice name,
                          const char *announced, uint64_t now_ns, size_t *room, struct buf *patch)
{
    const struct agreement_entry *entry = find(agreement, CLASS_KEY, name);

    if (entry == NULL && *room != 0) {
        put(patch, agreement, CLASS_KEY, name, announced);
        --*room;
    }
    if (entry != NULL && !entry->is_in_force && is_old(entry, AGREEMENT_MS, now_ns))
        put(patch, agreement, CLASS_KEY, name, IN_FORCE);
}

/* Removes what was announced by claimguards that are gone, or have another configuration. */
static void propose_removals(const struct agreement *agreement, const struct config *config,
                             uint64_t now_ns, struct buf *patch)
{
    bool wants_any = config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION;

    for (size_t i = 0; i < agreement->count; i++) {
        const struct agreement_entry *entry = &agreement->lists[agreement->present][i];
        if (!begins_with(slice_of(entry->key), SLICE(CLASS_KEY)) || entry->is_in_force)
            continue;
        struct slice name = slice_of(entry->key + sizeof CLASS_KEY - 1);
        if (is_old(entry, AGREEMENT_DISPLACED_MS, now_ns) &&
            !(wants_any &&
              config_makes_exclusive(config, name, config->defer_fs_mount.entry_count)))
            put(patch, agreement, CLASS_KEY, name, NULL);
    }
}

bool agreement_propose(struct agreement *agreement, const struct config *config, uint64_t now_ns,
                       int64_t now_unix_ms, struct buf *patch)
{
    int claim_lock = config->read_write_once_pod.claim_lock;
    char text[sizeof agreement->announced];
    size_t room = room_for_classes(agreement);

    buf_reset(patch, SIZE_MAX);
    if (agreement->began_ns == 0)
        return false;
    (void)snprintf(text, sizeof text, "announced at %lld", (long long)now_unix_ms);
    propose_lock(agreement, claim_lock, text, now_ns, patch);
    propose_removals(agreement, config, now_ns, patch);
    for (size_t i = 0;
         claim_lock == CLAIM_LOCK_ANNOTATION && i < config->defer_fs_mount.entry_count; i++)
        if (config_adds_exclusive(config, i))
            propose_class(agreement, config->defer_fs_mount.entries[i].storage_class, text, now_ns,
                          &room, patch);
    if (patch->len == 0)
        return false;
    buf_put(patch, SLICE("}}"));
    return !patch->failed;
}

/* ---- what follows ---- */

static int check_lock(const struct agreement *agreement, int claim_lock, struct error *err)
{
    const struct agreement_entry *other = find_lock(agreement, other_lock(claim_lock));
    const char *name = config_claim_lock_text(claim_lock);

    if (other != NULL)
        return error_set(err, ERROR_INVALID,
                         "no pod with claims is bound: this claimguard has claimLock: "
                         "%s, and claimLock: %s is %s in this cluster",
                         name, config_claim_lock_text(other_lock(claim_lock)),
                         other->is_in_force ? "in force" : "announced");
    return is_in_force(find_lock(agreement, claim_lock))
               ? 0
               : error_set(err, ERROR_INVALID,
                           "claimLock: %s is new in this cluster: it is in force %d s after it was "
                           "announced, and until then no pod with claims is bound",
                           name, AGREEMENT_MS / 1000);
}

/* The text stays the same while the wait lasts: an Event has it. */
static int set_unread(const struct agreement *agreement, struct error *err)
{
    bool has_problem = agreement->problem[0] != '\0';
    char when[40] = "was never read";

    if (agreement->began_ns != 0)
        (void)snprintf(when, sizeof when, "was last read over %d s ago", AGREEMENT_FRESH_MS / 1000);
    return error_set(err, ERROR_UNAVAILABLE,
                     "no pod with claims is bound: the ConfigMap " AGREEMENT_NAME
                     ", with which claimguards agree, %s%s%s",
                     when, has_problem ? ": " : "", agreement->problem);
}

int agreement_check(const struct agreement *agreement, int claim_lock, uint64_t now_ns,
                    struct error *err)
{
    if (agreement->is_absent && claim_lock == CLAIM_LOCK_LOCAL)
        return 0;
    if (agreement->began_ns == 0 || now_ns - agreement->began_ns >= AGREEMENT_FRESH_MS * NS_PER_MS)
        return set_unread(agreement, err);
    return check_lock(agreement, claim_lock, err);
}
