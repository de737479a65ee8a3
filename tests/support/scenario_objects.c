/* A scenario's objects, and what a scheduler sends about them. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

void put_claim(const char *name)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-%s\"},\"spec\":{"
            "\"claimRef\":{\"namespace\":\"default\",\"name\":\"%s\"},\"csi\":{\"driver\":"
            "\"plugin1.example.com\"}}}",
            name, name);
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"storageClassName\":"
            "\"fast-storage\",\"volumeName\":\"pv-%s\"},\"status\":{\"phase\":\"Bound\"}}",
            name, name);
}

const char *scenario_printf(const char *format, ...)
{
    va_list arguments;
    char *out = NULL;

    va_start(arguments, format);
    int rc = vasprintf(&out, format, arguments);
    va_end(arguments);
    check(rc >= 0, "no memory");
    return out;
}

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

const char *pod_text(const struct test_pod *pod)
{
    const char *uid = api_text("pods", "default", pod->name, "metadata.uid");
    const char *second = pod->second_claim == NULL
                             ? ""
                             : scenario_printf(",{\"name\":\"w\",\"persistentVolumeClaim\":{"
                                               "\"claimName\":\"%s\"}}",
                                               pod->second_claim);
    const char *volumes =
        pod->claim == NULL
            ? ""
            : scenario_printf(
                  ",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                  "\"%s\"}}%s]",
                  pod->claim, second);
    const char *node = pod->node == NULL ? "" : scenario_printf(",\"nodeName\":\"%s\"", pod->node);

    return scenario_printf(
        "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
        "\"uid\":\"%s\"%s},\"spec\":{\"priority\":%d%s%s%s},\"status\":{\"phase\":"
        "\"%s\"}}",
        pod->name, uid, or_empty(pod->more_meta), pod->priority, volumes, node,
        or_empty(pod->more_spec), pod->node == NULL ? "Pending" : "Running");
}

void put_pod(const struct test_pod *pod)
{
    api_put("%s", pod_text(pod));
}

void put_pair(const char *node)
{
    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = node});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
}

const char *node_of(const char *pod)
{
    return api_text("pods", "default", pod, "spec.nodeName");
}

const char *filter_body(const char *pod)
{
    return scenario_printf("{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"node-1\",\"node-2\"]}",
                           api_object("pods", "default", pod));
}

const char *bind_body(const char *pod, const char *node)
{
    return scenario_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\","
                           "\"Node\":\"%s\"}",
                           pod, api_text("pods", "default", pod, "metadata.uid"), node);
}

const char *preempt_body(const char *pod, const char *node, const char *victim)
{
    const char *uid = api_text("pods", "default", victim, "metadata.uid");

    return scenario_printf(
        "{\"Pod\":%s,\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"%s\":{"
        "\"Pods\":[%s],\"NumPDBViolations\":0}}}",
        api_object("pods", "default", pod), node,
        victim[0] == '\0' ? "" : scenario_printf("{\"UID\":\"%s\"}", uid));
}

bool filter_passes(const struct guard *guard, const char *pod)
{
    char *answer = guard_call(guard, "/filter", filter_body(pod));
    json_t *json = json_loads(answer, 0, NULL);
    bool passes = json_array_size(json_object_get(json, "NodeNames")) != 0;

    printf("filter %s: %s\n", pod, answer);
    json_decref(json);
    free(answer);
    return passes;
}

bool bind_succeeds(const struct guard *guard, const char *pod, const char *node)
{
    char *answer = guard_call(guard, "/bind", bind_body(pod, node));
    json_t *json = json_loads(answer, 0, NULL);
    const char *error = json_string_value(json_object_get(json, "Error"));
    bool is_bound = error == NULL || error[0] == '\0';

    printf("bind %s: %s\n", pod, answer);
    json_decref(json);
    free(answer);
    return is_bound;
}

static void *call_beside(void *context)
{
    struct beside *beside = context;

    beside->succeeds = beside->node == NULL
                           ? filter_passes(beside->guard, beside->pod)
                           : bind_succeeds(beside->guard, beside->pod, beside->node);
    return NULL;
}

void bind_beside(struct beside *beside, const struct guard *guard, const char *pod,
                 const char *node)
{
    *beside = (struct beside){.guard = guard, .pod = pod, .node = node};
    check(pthread_create(&beside->thread, NULL, call_beside, beside) == 0, "a thread");
}

void filter_beside(struct beside *beside, const struct guard *guard, const char *pod)
{
    bind_beside(beside, guard, pod, NULL);
}

bool beside_end(struct beside *beside)
{
    (void)pthread_join(beside->thread, NULL);
    return beside->succeeds;
}
