#include "good_server.h"

#include <string.h>

#include "config/base/buf.h"

#define GOOD_VERSION "9999999999999999999"

const char *const good_names[GOOD_NAMES] = {"good-0", "good-1"};

static void put_good_stream(struct buf *out, const char *type)
{
    for (size_t i = 0; i < GOOD_NAMES; i++)
        buf_printf(out,
                   "{\"type\":\"ADDED\",\"object\":{%s,\"metadata\":{\"name\":\"%s\",\"namespace\":"
                   "\"n\",\"uid\":\"u\",\"resourceVersion\":\"" GOOD_VERSION "\"}}}\n",
                   type, good_names[i]);
    buf_printf(
        out,
        "{\"type\":\"BOOKMARK\",\"object\":{%s,\"metadata\":{\"resourceVersion\":\"" GOOD_VERSION
        "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
        type);
}

static void put_good_page(struct buf *out, const char *kind, const char *api_version)
{
    buf_printf(out,
               "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
               "\"" GOOD_VERSION "\"},\"items\":[",
               kind, api_version);
    for (size_t i = 0; i < GOOD_NAMES; i++)
        buf_printf(out,
                   "%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"u\","
                   "\"resourceVersion\":\"" GOOD_VERSION "\"}}",
                   i == 0 ? "" : ",", good_names[i]);
    buf_printf(out, "]}\n");
}

void good_server_answer(struct reflector *reflector)
{
    struct reflector_ending ending = {.status = 200};
    struct buf text, type, path;
    const char *kind = kind_text(reflector->kind);
    const char *api_path = kind_api_path(reflector->kind);
    const char *api_version = api_path + (strncmp(api_path, "/apis/", 6) == 0 ? 6 : 5);

    buf_init(&text, 1 << 20);
    buf_init(&type, 1 << 20);
    buf_init(&path, 1 << 20);
    reflector_request(reflector, 1, &path);
    buf_printf(&type, "\"kind\":\"%s\",\"apiVersion\":\"%s\"", kind, api_version);
    if (reflector->phase == PHASE_WATCH)
        buf_printf(&text, "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n");
    else if (reflector->phase == PHASE_STREAM)
        put_good_stream(&text, buf_text(&type));
    else if (reflector->phase == PHASE_PAGES && reflector->page[0] == '\0')
        put_good_page(&text, kind, api_version);
    else if (reflector->phase == PHASE_PAGES)
        ending.status = 500;
    (void)reflector_take(reflector, ending.status, buf_slice(&text), 2);
    reflector_end(reflector, &ending, 3);
    buf_dispose(&path);
    buf_dispose(&type);
    buf_dispose(&text);
}
