#include "cache/client/api_path.h"

void api_path_escape(struct buf *path, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20U) >= 'a' && (c | 0x20U) <= 'z') ||
                        c == '-' || c == '.' || c == '_' || c == '~';
        if (is_plain)
            buf_put(path, (struct slice){text.ptr + i, 1});
        else
            buf_printf(path, "%%%02X", c);
    }
}

void api_path_put(struct buf *path, enum kind kind, struct slice ns)
{
    buf_put(path, slice_of(kind_api_path(kind)));
    if (ns.len != 0 && kind_is_namespaced(kind)) {
        buf_put(path, SLICE("/namespaces/"));
        api_path_escape(path, ns);
    }
    buf_printf(path, "/%s", kind_resource(kind));
}

void object_path(struct buf *path, enum kind kind, struct slice ns, struct slice name)
{
    api_path_put(path, kind, ns);
    buf_put(path, SLICE("/"));
    api_path_escape(path, name);
    path->failed = path->failed || !object_reference_is_possible(
                                       &(struct object_reference){.ns = ns, .name = name});
}

void request_path(struct buf *path, const struct request *request)
{
    const struct object_reference *object = &request->object;

    if (request->path != NULL)
        buf_put(path, slice_of(request->path));
    else
        object_path(path, object->kind, object->ns, object->name);
    buf_put(path, slice_of(request->suffix));
}
