#include "extender/report/value.h"

#include "config/base/buf.h"

enum { ESCAPED_BYTES = 6 /* of one byte, at most */ };

json_t *value_text(struct slice s)
{
    json_t *value = json_stringn(s.ptr == NULL ? "" : s.ptr, s.len);
    struct buf quoted;

    if (value != NULL)
        return value;
    buf_init(&quoted, ESCAPED_BYTES * s.len + sizeof "\"\"");
    buf_json(&quoted, s);
    if (!quoted.failed)
        value = json_loadb(quoted.bytes, quoted.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    buf_dispose(&quoted);
    return value;
}
