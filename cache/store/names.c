#include "cache/store/names.h"

static bool name_matches(const struct table_record *record, const void *key)
{
    return slice_equal(name_slice((const struct name *)(const void *)record),
                       *(const struct slice *)key);
}

static struct name *find(const struct names *names, uint32_t hash, struct slice s)
{
    return (struct name *)(void *)table_find(&names->table, hash, name_matches, &s);
}

uint32_t names_hash(struct slice s)
{
    return table_hash(s, 0);
}

struct name *names_find(const struct names *names, struct slice s)
{
    return find(names, names_hash(s), s);
}

struct name *names_take(struct names *names, struct slice s, bool *failed)
{
    if (s.len == 0)
        return NULL;
    uint32_t hash = names_hash(s);
    struct name *name = s.len > UINT32_MAX ? NULL : find(names, hash, s);
    if (name != NULL) {
        name->refs++;
        return name;
    }
    name = s.len > UINT32_MAX ? NULL : pool_alloc(names->table.pool, sizeof *name + s.len);
    if (name == NULL) {
        *failed = true;
        return NULL;
    }
    name->record.hash = hash;
    name->refs = 1;
    name->len = (uint32_t)s.len;
    memcpy(name->bytes, s.ptr, s.len);
    if (!table_add(&names->table, &name->record)) {
        pool_free(names->table.pool, name);
        *failed = true;
        return NULL;
    }
    return name;
}

void names_release(struct names *names, struct name *name)
{
    if (name == NULL || --name->refs != 0)
        return;
    table_remove(&names->table, &name->record);
    pool_free(names->table.pool, name);
}

void names_dispose(struct names *names)
{
    table_free_records(&names->table);
}
