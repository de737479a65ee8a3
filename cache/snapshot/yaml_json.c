#include "cache/snapshot/yaml_json.h"

#include <stdlib.h>

#include "cache/json/json_text.h"
#include "cache/store/table.h"

static const char no_memory[] = "out of memory";

void yaml_json_init(struct yaml_json *writer, size_t max_bytes)
{
    *writer = (struct yaml_json){0};
    buf_init(&writer->out, max_bytes);
    buf_init(&writer->anchored, YAML_COPIED_BYTES_MAX);
    buf_init(&writer->merges, YAML_COPIED_BYTES_MAX);
    buf_init(&writer->keys, SIZE_MAX);
    buf_init(&writer->marks, SIZE_MAX);
    buf_init(&writer->anchors, SIZE_MAX);
}

void yaml_json_dispose(struct yaml_json *writer)
{
    buf_dispose(&writer->out);
    buf_dispose(&writer->keys);
    buf_dispose(&writer->marks);
    buf_dispose(&writer->anchored);
    buf_dispose(&writer->merges);
    buf_dispose(&writer->anchors);
}

void yaml_json_start(struct yaml_json *writer)
{
    writer->depth = 0;
    writer->has_aliases = false;
    buf_reset(&writer->keys, SIZE_MAX);
    buf_reset(&writer->marks, SIZE_MAX);
    buf_reset(&writer->out, SIZE_MAX);
    buf_reset(&writer->merges, SIZE_MAX);
}

void yaml_json_start_document(struct yaml_json *writer)
{
    buf_reset(&writer->anchors, SIZE_MAX);
    buf_reset(&writer->anchored, SIZE_MAX);
}

static bool is_one_of(struct slice s, const char *const *words)
{
    for (; *words != NULL; words++)
        if (slice_equal(s, slice_of(*words)))
            return true;
    return false;
}

/* A plain scalar by YAML 1.1, as Kubernetes reads it: also yes, no, on and off are booleans.
 * Numbers that JSON does not have (0x1f, 1_000, .inf) stay strings; no field that is read has such
 * a value. */
static void put_plain(struct buf *out, struct slice s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes",
                                        "YES",  "on",   "On",   "ON",  NULL};
    static const char *const falses[] = {"false", "False", "FALSE", "no",  "No",
                                         "NO",    "off",   "Off",   "OFF", NULL};

    if (is_one_of(s, nulls)) {
        buf_put(out, SLICE("null"));
    } else if (is_one_of(s, trues)) {
        buf_put(out, SLICE("true"));
    } else if (is_one_of(s, falses)) {
        buf_put(out, SLICE("false"));
    } else {
        struct json_scan scan = json_text_scalar(s.ptr, s.ptr + s.len);
        if (scan.problem == NULL && scan.at == s.ptr + s.len)
            buf_put(out, s);
        else
            buf_json(out, s);
    }
}

static struct yaml_level *innermost(struct yaml_json *writer)
{
    return writer->depth == 0 ? NULL : &writer->levels[writer->depth - 1];
}

static const char *put_item(struct buf *array, const void *item, size_t size)
{
    buf_put(array, (struct slice){item, size});
    return array->failed ? no_memory : NULL;
}

static struct yaml_key *keys_of(const struct yaml_json *writer)
{
    return (struct yaml_key *)(void *)writer->keys.bytes;
}

static size_t key_count(const struct yaml_json *writer)
{
    return writer->keys.len / sizeof(struct yaml_key);
}

/* Adds the hash of a key to those of the innermost mapping. */
static const char *put_key(struct yaml_json *writer, uint64_t hash, struct place place)
{
    struct yaml_key key = {hash, place};

    return put_item(&writer->keys, &key, sizeof key);
}

/* Adds a mark for what is written next. */
static const char *put_mark(struct yaml_json *writer, struct place place)
{
    struct yaml_mark mark = {writer->out.len, place};

    return writer->keeps_marks ? put_item(&writer->marks, &mark, sizeof mark) : NULL;
}

/* Removes the marks from that offset on. */
static void cut_marks(struct yaml_json *writer, size_t offset)
{
    const struct yaml_mark *marks = (const struct yaml_mark *)(const void *)writer->marks.bytes;
    size_t count = writer->marks.len / sizeof *marks;

    while (count != 0 && marks[count - 1].offset >= offset)
        count--;
    writer->marks.len = count * sizeof *marks;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct yaml_key *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_keys(const void *a, const void *b)
{
    const struct yaml_key *x = a, *y = b;
    int order = compare_hashes(x, y);

    return order != 0 ? order : place_compare(x->place, y->place);
}

/* Removes the keys of the mapping that ends. False, with the first place at which a key appeared
 * again, whatever the seed. Keys with equal hashes (64 bits, seeded) count as equal: by chance once
 * in 10^13 mappings of 1,000 keys. */
static bool keys_are_unique(struct yaml_json *writer, size_t begin, struct place *place)
{
    size_t count = key_count(writer) - begin;
    bool are_unique = true;

    writer->keys.len = begin * sizeof(struct yaml_key);
    if (count < 2)
        return true;
    struct yaml_key *keys = keys_of(writer) + begin;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (keys[i].hash != keys[i - 1].hash)
            continue;
        if (are_unique || place_compare(keys[i].place, *place) < 0)
            *place = keys[i].place;
        are_unique = false;
    }
    return are_unique;
}

static bool expects_key(struct yaml_json *writer)
{
    const struct yaml_level *level = innermost(writer);

    return level != NULL && level->is_mapping && level->expects_key;
}

/* The comma or colon before the next key or value. */
static void put_separator(struct yaml_json *writer)
{
    struct yaml_level *level = innermost(writer);

    if (level == NULL)
        return;
    if (level->is_mapping) {
        level->expects_key = !level->expects_key;
        if (level->expects_key) { /* a value comes now, a key next */
            if (level->is_merging)
                level->value_begin = writer->out.len;
            else
                buf_put(&writer->out, SLICE(":"));
            return;
        }
    }
    if (!level->is_first)
        buf_put(&writer->out, SLICE(","));
    level->is_first = false;
}

/* ---- what is copied ---- */

/* The value of an anchor is kept as JSON text; an alias writes it once more. How much is copied has
 * a limit, so a short file cannot become a long one. */
static const char too_much[] =
    "aliases and merge keys (<<) expand to over 64 MiB: write the values out";

static uint64_t hash_of(struct slice text)
{
    uint64_t high = table_hash(text, 1);
    return high << 32 | table_hash(text, 2);
}

/* Counts bytes that are copied. */
static bool may_copy(struct yaml_json *writer, size_t count)
{
    writer->copied += count;
    return writer->copied <= YAML_COPIED_BYTES_MAX;
}

/* ---- anchors and aliases ---- */

static uint64_t name_hash(const yaml_char_t *name)
{
    return hash_of(slice_of((const char *)name)) | 1; /* never 0 */
}

/* The value that starts next, at that offset of the output, has this anchor, if its name is not
 * NULL. */
static void begin_anchor(struct yaml_level *level, const yaml_char_t *name, size_t offset)
{
    level->anchor = name == NULL ? 0 : name_hash(name);
    level->begin = offset;
}

/* The value that begins at that offset has ended. */
static const char *end_anchor(struct yaml_json *writer, uint64_t name, size_t offset)
{
    size_t len = writer->out.len - offset;
    struct yaml_anchor anchor = {name, writer->anchored.len, len};

    if (writer->out.failed) /* the object is too big */
        return NULL;
    if (writer->anchors.len == YAML_ANCHORS_MAX * sizeof anchor)
        return "a document has over 1,000 anchors";
    if (!may_copy(writer, len))
        return too_much;
    const char *problem = put_item(&writer->anchors, &anchor, sizeof anchor);
    buf_put(&writer->anchored, (struct slice){writer->out.bytes + offset, len});
    return writer->anchored.failed ? no_memory : problem;
}

/* The last anchor of that name; NULL: there is none, or its value has not ended. */
static const struct yaml_anchor *find_anchor(const struct yaml_json *writer, uint64_t name)
{
    for (unsigned i = 0; i < writer->depth; i++)
        if (writer->levels[i].anchor == name)
            return NULL;
    const struct yaml_anchor *anchors =
        (const struct yaml_anchor *)(const void *)writer->anchors.bytes;
    for (size_t i = writer->anchors.len / sizeof *anchors; i-- > 0;)
        if (anchors[i].name == name)
            return &anchors[i];
    return NULL;
}

/* Writes the value of the anchor once more. */
static const char *repeat_anchor(struct yaml_json *writer, const yaml_char_t *name)
{
    const struct yaml_anchor *anchor = find_anchor(writer, name_hash(name));

    writer->has_aliases = true;
    if (anchor == NULL)
        return "this document has no such anchor before this alias";
    if (!may_copy(writer, anchor->len + 1))
        return too_much;
    buf_put(&writer->out, (struct slice){writer->anchored.bytes + anchor->begin, anchor->len});
    return NULL;
}

/* ---- merge keys ---- */

/* The value of `<<` has ended: takes it from the output. */
static const char *take_merged(struct yaml_json *writer, struct yaml_level *level)
{
    size_t begin = level->value_begin, len = writer->out.len - begin;

    level->is_merging = false;
    writer->has_aliases = true;
    if (writer->out.failed)
        return NULL;
    if (!may_copy(writer, len))
        return too_much;
    buf_put(&writer->merges, (struct slice){writer->out.bytes + begin, len});
    level->merge_len = len;
    writer->out.len = begin;
    cut_marks(writer, begin);
    return writer->merges.failed ? no_memory : NULL;
}

/* Whether the innermost mapping has the key; its keys are sorted up to `sorted`. */
static bool has_key(struct yaml_json *writer, size_t sorted, uint64_t hash)
{
    const struct yaml_key wanted = {.hash = hash}, *keys = keys_of(writer);
    size_t begin = innermost(writer)->keys_begin;

    return sorted != begin &&
           bsearch(&wanted, keys + begin, sorted - begin, sizeof *keys, compare_hashes) != NULL;
}

/* Writes a member as it stands, unless the mapping has its key. */
static const char *merge_member(struct yaml_json *writer, size_t sorted, struct slice key,
                                struct slice member)
{
    struct yaml_level *level = innermost(writer);
    uint64_t hash = hash_of(key);
    const char *problem;

    if (has_key(writer, sorted, hash))
        return NULL;
    if (!may_copy(writer, member.len))
        return too_much;
    if (!level->is_first)
        buf_put(&writer->out, SLICE(","));
    level->is_first = false;
    problem = put_mark(writer, level->merge_place);
    buf_put(&writer->out, member);
    return problem != NULL ? problem : put_key(writer, hash, level->merge_place);
}

/* Merges the mapping that json is at. */
static const char *merge_mapping(struct yaml_json *writer, struct pull *json)
{
    size_t begin = innermost(writer)->keys_begin, sorted = key_count(writer);
    const char *problem = NULL, *at;
    struct slice key, value;

    if (sorted > begin)
        qsort(keys_of(writer) + begin, sorted - begin, sizeof(struct yaml_key), compare_keys);
    if (json->at == json->end || *json->at != '{')
        return "<<: expected a mapping, or a list of mappings";
    if (!pull_object(json))
        return json->problem;
    for (at = json->at; problem == NULL && pull_key(json, &key); at = json->at) {
        const char *quote = memchr(at, '"', (size_t)(json->at - at));
        if (!pull_raw(json, &value))
            break;
        problem = merge_member(writer, sorted, key,
                               (struct slice){quote, (size_t)(value.ptr + value.len - quote)});
    }
    return problem != NULL ? problem : json->problem;
}

/* A mapping with `<<` ends: writes those members of the value whose keys it does not have. */
static const char *put_merged(struct yaml_json *writer, struct yaml_level *level)
{
    struct slice text = {writer->merges.bytes + level->merge_begin, level->merge_len};
    const char *problem = NULL;
    struct pull json;
    unsigned count = 0;

    pull_init(&json, text);
    if (text.len == 0 || *text.ptr != '[') {
        problem = merge_mapping(writer, &json);
    } else if (pull_array(&json)) {
        while (problem == NULL && pull_item(&json))
            problem = count++ == YAML_MERGED_MAX ? "<<: a list of over 64 mappings"
                                                 : merge_mapping(writer, &json);
    }
    writer->merges.len = level->merge_begin;
    level->merge_len = 0;
    return problem != NULL ? problem : json.problem;
}

/* ---- events ---- */

/* The key `<<`: its value is merged at the end of the mapping, whose own keys win. */
static const char *begin_merge(struct yaml_json *writer, struct place place)
{
    struct yaml_level *level = innermost(writer);

    if (level->merge_len != 0)
        return "this key appears twice";
    level->expects_key = false;
    level->is_merging = true;
    level->merge_begin = writer->merges.len;
    level->merge_place = place;
    return NULL;
}

static const char *put_scalar(struct yaml_json *writer, const yaml_event_t *event)
{
    bool is_key = expects_key(writer);
    bool is_plain =
        event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && event->data.scalar.plain_implicit;
    struct place place = yaml_place(&event->start_mark);
    const char *problem = NULL;
    struct yaml_level scalar;

    if (is_key && is_plain && slice_equal(yaml_scalar(event), SLICE("<<")))
        return begin_merge(writer, place);
    if (is_key)
        problem = put_key(writer, hash_of(yaml_scalar(event)), place);
    put_separator(writer);
    if (problem == NULL)
        problem = put_mark(writer, place);
    if (problem != NULL)
        return problem;
    begin_anchor(&scalar, event->data.scalar.anchor, writer->out.len);
    if (is_plain && !is_key)
        put_plain(&writer->out, yaml_scalar(event));
    else
        buf_json(&writer->out, yaml_scalar(event));
    return scalar.anchor == 0 ? NULL : end_anchor(writer, scalar.anchor, scalar.begin);
}

static const char *put_alias(struct yaml_json *writer, const yaml_event_t *event)
{
    const char *problem;

    if (expects_key(writer))
        return "an alias cannot be a key: write the key out";
    put_separator(writer);
    problem = put_mark(writer, yaml_place(&event->start_mark));
    return problem != NULL ? problem : repeat_anchor(writer, event->data.alias.anchor);
}

static const char *put_start(struct yaml_json *writer, bool is_mapping, const yaml_char_t *anchor)
{
    if (expects_key(writer))
        return "a key must be a scalar";
    if (writer->depth == YAML_DEPTH_MAX)
        return json_text_too_deep;
    put_separator(writer);
    struct yaml_level *level = &writer->levels[writer->depth++];
    *level = (struct yaml_level){.is_mapping = is_mapping,
                                 .expects_key = true,
                                 .is_first = true,
                                 .keys_begin = key_count(writer)};
    begin_anchor(level, anchor, writer->out.len);
    buf_put(&writer->out, is_mapping ? SLICE("{") : SLICE("["));
    return NULL;
}

static const char *put_end(struct yaml_json *writer, struct place *place)
{
    struct yaml_level *level = innermost(writer);
    const char *problem = NULL;

    if (level->merge_len != 0) {
        problem = put_merged(writer, level);
        *place = level->merge_place;
    }
    buf_put(&writer->out, level->is_mapping ? SLICE("}") : SLICE("]"));
    if (problem == NULL && !keys_are_unique(writer, level->keys_begin, place) &&
        !writer->allows_twice) /* asked last: the keys are dropped in any case */
        problem = "this key appears twice";
    writer->depth--;
    return problem != NULL || level->anchor == 0 ? problem
                                                 : end_anchor(writer, level->anchor, level->begin);
}

/* Adds the event. */
static const char *put_event(struct yaml_json *writer, const yaml_event_t *event,
                             struct place *place)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT: return put_scalar(writer, event);
    case YAML_ALIAS_EVENT: return put_alias(writer, event);
    case YAML_MAPPING_START_EVENT: return put_start(writer, true, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_START_EVENT:
        return put_start(writer, false, event->data.sequence_start.anchor);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return put_end(writer, place);
    default: return NULL;
    }
}

const char *yaml_json_put(struct yaml_json *writer, const yaml_event_t *event, struct place *place)
{
    *place = yaml_place(&event->start_mark);
    const char *problem = put_event(writer, event, place);
    struct yaml_level *level = innermost(writer);
    bool has_value = level != NULL && level->is_merging && level->expects_key;
    if (problem == NULL && has_value)
        problem = take_merged(writer, level);
    if (problem == NULL && writer->out.failed)
        problem = "one object is too big";
    return problem;
}
