#include "cache/store/names.h"

static bool name_matches(const void *record, const void *text)
{
    return slice_equal(name_slice(record), *(const struct slice *)text);
}

static struct name *find(const struct names *names, uint32_t hash, struct slice s)
{
    return table_find(&names->table, hash, name_matches, &s);
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
    name = s.len > UINT32_MAX ? NULL : table_make(&names->table, hash, sizeof *name + s.len);
    if (name == NULL) {
        *failed = true;
        return NULL;
    }
    name->refs = 1;
    name->len = (uint32_t)s.len;
    memcpy(name->bytes, s.ptr, s.len);
    return name;
}

void names_release(struct names *names, struct name *name)
{
    if (name != NULL && --name->refs == 0)
        table_delete(&names->table, &name->record);
}

void names_dispose(struct names *names)
{
    table_free_records(&names->table);
}

/* ---- UIDs ---- */

enum { NAME_OFFSET = 8 };

static bool is_dash_position(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* 0..15, or -1. Upper case is refused, because it would be printed as lower case. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_named(const struct uid *uid)
{
    static const unsigned char zero[NAME_OFFSET];
    return memcmp(uid->bytes, zero, sizeof zero) == 0;
}

static struct name *name_of(const struct uid *uid)
{
    struct name *name;
    memcpy(&name, uid->bytes + NAME_OFFSET, sizeof name);
    return name;
}

/* Also false for the few UUIDs that begin like a stored name. */
bool uid_parse(struct uid *uid, struct slice text)
{
    size_t nibble = 0;

    *uid = (struct uid){{0}};
    if (text.len != UID_TEXT_BYTES)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = hex_digit(text.ptr[i]);
        if (is_dash_position(i) ? text.ptr[i] != '-' : digit < 0)
            return false;
        if (is_dash_position(i))
            continue;
        uid->bytes[nibble / 2] = (unsigned char)(uid->bytes[nibble / 2] << 4 | digit);
        nibble++;
    }
    return !is_named(uid);
}

static struct uid of_name(const struct name *name)
{
    struct uid uid = {{0}};

    memcpy(uid.bytes + NAME_OFFSET, &name, sizeof name);
    return uid;
}

struct uid uid_take(struct names *names, struct slice text, bool *failed)
{
    struct uid uid;

    return uid_parse(&uid, text) ? uid : of_name(names_take(names, text, failed));
}

bool uid_find(const struct names *names, struct slice text, struct uid *out)
{
    if (uid_parse(out, text))
        return true;
    const struct name *name = names_find(names, text);
    *out = of_name(name);
    return name != NULL;
}

void uid_release(struct names *names, struct uid uid)
{
    if (is_named(&uid))
        names_release(names, name_of(&uid));
}

bool uid_is(const struct uid *uid, struct slice text)
{
    char buffer[UID_TEXT_BYTES];

    return text.len != 0 && slice_equal(uid_text(uid, buffer), text);
}

struct slice uid_text(const struct uid *uid, char buffer[UID_TEXT_BYTES])
{
    size_t nibble = 0;

    if (is_named(uid))
        return name_slice(name_of(uid));
    for (size_t i = 0; i < UID_TEXT_BYTES; i++) {
        if (is_dash_position(i)) {
            buffer[i] = '-';
            continue;
        }
        unsigned byte = uid->bytes[nibble / 2];
        buffer[i] = "0123456789abcdef"[nibble % 2 == 0 ? byte >> 4 : byte & 15U];
        nibble++;
    }
    return (struct slice){buffer, UID_TEXT_BYTES};
}
