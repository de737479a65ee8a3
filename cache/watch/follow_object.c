#include "cache/watch/informer.h"

enum { OBJECT_PATH_BYTES_MAX = 4096 };

int follow_call_object(struct follow *follow, const struct object_call *call, struct arena *arena,
                       struct follow_answer *out, struct error *err)
{
    struct buf path;

    buf_init(&path, OBJECT_PATH_BYTES_MAX);
    object_path(&path, call->object.kind, call->object.namespace, call->object.name);
    buf_put(&path, slice_of(call->suffix));
    const char *text = buf_text(&path);
    int rc = text == NULL ? error_no_memory(err)
                          : follow_call(follow, call->method, text, call->content_type, call->body,
                                        call->timeout_ms, arena, out, err);
    buf_dispose(&path);
    return rc;
}
