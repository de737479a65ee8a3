/*
 * Anchors, aliases and merge keys. The value of an anchor is kept as JSON text; an alias writes it
 * once more. How much is copied has a limit, so a short file cannot become a long one.
 */
#include <stdlib.h>

#include "cache/snapshot/yaml_json_internal.h"
#include "cache/store/table.h"

static const char too_much[] =
    "aliases and merge keys (<<) expand to over 64 MiB: write the values out";

uint64_t yaml_hash(struct slice text)
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
    return yaml_hash(slice_of((const char *)name)) | 1; /* never 0 */
}

void yaml_anchor_begin(struct yaml_level *level, const yaml_char_t *name, size_t offset)
{
    level->anchor = name == NULL ? 0 : name_hash(name);
    level->begin = offset;
}

const char *yaml_anchor_end(struct yaml_json *writer, uint64_t name, size_t offset)
{
    size_t len = writer->out.len - offset;

    if (writer->out.failed) /* the object is too big */
        return NULL;
    if (writer->anchor_count == YAML_ANCHORS_MAX)
        return "a document has over 1,000 anchors";
    if (!may_copy(writer, len))
        return too_much;
    if (writer->anchors == NULL)
        writer->anchors = malloc(YAML_ANCHORS_MAX * sizeof *writer->anchors);
    if (writer->anchors == NULL)
        return yaml_no_memory;
    writer->anchors[writer->anchor_count++] = (struct yaml_anchor){name, writer->anchored.len, len};
    buf_put(&writer->anchored, (struct slice){writer->out.bytes + offset, len});
    return writer->anchored.failed ? yaml_no_memory : NULL;
}

/* The last anchor of that name; NULL: there is none, or its value has not ended. */
static const struct yaml_anchor *find_anchor(const struct yaml_json *writer, uint64_t name)
{
    for (unsigned i = 0; i < writer->depth; i++)
        if (writer->levels[i].anchor == name)
            return NULL;
    for (size_t i = writer->anchor_count; i-- > 0;)
        if (writer->anchors[i].name == name)
            return &writer->anchors[i];
    return NULL;
}

const char *yaml_alias_put(struct yaml_json *writer, const yaml_char_t *name)
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

const char *yaml_merge_take(struct yaml_json *writer, struct yaml_level *level)
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
    yaml_marks_cut(writer, begin);
    return writer->merges.failed ? yaml_no_memory : NULL;
}

/* A mapping into which others are merged: its keys are sorted up to `sorted`. */
struct merging {
    struct yaml_json *writer;
    struct yaml_level *level;
    size_t sorted;
};

static bool has_key(const struct merging *merging, uint64_t hash)
{
    const struct yaml_json *writer = merging->writer;
    size_t low = merging->level->keys_begin, high = merging->sorted;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (writer->keys[middle].hash == hash)
            return true;
        if (writer->keys[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Writes a member as it stands, unless the mapping has its key. */
static const char *merge_member(struct merging *merging, struct slice key, struct slice member)
{
    struct yaml_json *writer = merging->writer;
    struct place place = merging->level->merge_place;
    uint64_t hash = yaml_hash(key);
    const char *problem;

    if (has_key(merging, hash))
        return NULL;
    if (!may_copy(writer, member.len))
        return too_much;
    if (!merging->level->is_first)
        buf_put(&writer->out, SLICE(","));
    merging->level->is_first = false;
    problem = yaml_mark_put(writer, place);
    buf_put(&writer->out, member);
    return problem != NULL ? problem : yaml_key_put(writer, hash, place);
}

/* Merges the mapping that json is at. */
static const char *merge_mapping(struct merging *merging, struct pull *json)
{
    struct yaml_json *writer = merging->writer;
    size_t begin = merging->level->keys_begin;
    const char *problem = NULL, *at;
    struct slice key, value;

    if (writer->key_count > begin)
        qsort(writer->keys + begin, writer->key_count - begin, sizeof *writer->keys,
              yaml_key_order);
    merging->sorted = writer->key_count;
    if (json->at == json->end || *json->at != '{')
        return "<<: expected a mapping, or a list of mappings";
    if (!pull_object(json))
        return json->problem;
    for (at = json->at; problem == NULL && pull_key(json, &key); at = json->at) {
        const char *quote = memchr(at, '"', (size_t)(json->at - at));
        if (!pull_raw(json, &value))
            break;
        problem = merge_member(merging, key,
                               (struct slice){quote, (size_t)(value.ptr + value.len - quote)});
    }
    return problem != NULL ? problem : json->problem;
}

const char *yaml_merge_put(struct yaml_json *writer, struct yaml_level *level)
{
    struct merging merging = {writer, level, 0};
    struct slice text = {writer->merges.bytes + level->merge_begin, level->merge_len};
    const char *problem = NULL;
    struct pull json;
    unsigned count = 0;

    pull_init(&json, text);
    if (text.len == 0 || *text.ptr != '[') {
        problem = merge_mapping(&merging, &json);
    } else if (pull_array(&json)) {
        while (problem == NULL && pull_item(&json))
            problem = count++ == YAML_MERGED_MAX ? "<<: a list of over 64 mappings"
                                                 : merge_mapping(&merging, &json);
    }
    writer->merges.len = level->merge_begin;
    level->merge_len = 0;
    return problem != NULL ? problem : json.problem;
}
