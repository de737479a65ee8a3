/*
 * generate: writes a made snapshot to standard output.
 *
 *     generate [--nodes N] [--pods N] [--claims N] [--exclusive SHARE] [--pending SHARE] [--seed N]
 *              [--volumes] [--drivers SHARE] [--deployments N] [--stateful PODS [--labels]]
 *
 * With Deployments, the objects are those of model_put_real_*, with volumes; with StatefulSets of
 * so many pods, those of model_put_stateful_*.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

typedef void put_object(const struct model *model, unsigned i, struct buf *out);

static bool put_all(const struct model *model, put_object *put, unsigned count,
                    const char **separator)
{
    struct buf out;
    bool ok = true;

    buf_init(&out, 1 << 20);
    for (unsigned i = 0; i < count && ok; i++) {
        buf_reset(&out, 1 << 20);
        buf_printf(&out, "%s", *separator);
        put(model, i, &out);
        *separator = ",\n";
        ok = !out.failed && fwrite(out.bytes, 1, out.len, stdout) == out.len;
    }
    buf_dispose(&out);
    return ok;
}

static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value > 100000000) {
        (void)fprintf(stderr, "generate: %s: expected a number\n", text);
        exit(2);
    }
    return (unsigned)value;
}

static bool put_real(const struct model *model, const char **separator)
{
    return put_all(model, model_put_real_node, model->nodes, separator) &&
           put_all(model, model_put_csi_node, model->nodes, separator) &&
           put_all(model, model_put_real_claim, model->claims, separator) &&
           put_all(model, model_put_real_volume, model->claims, separator) &&
           put_all(model, model_put_deployment, model->deployments, separator) &&
           put_all(model, model_put_real_pod, model->pods, separator);
}

static bool put_plain(const struct model *model, const char **separator)
{
    unsigned csi_nodes = model->driver_share > 0 ? model->nodes : 0;

    return put_all(model, model_put_node, model->nodes, separator) &&
           put_all(model, model_put_csi_node, csi_nodes, separator) &&
           put_all(model, model_put_claim, model->claims, separator) &&
           put_all(model, model_put_volume, model->has_volumes ? model->claims : 0, separator) &&
           put_all(model, model_put_pod, model->pods, separator);
}

static bool put_stateful(const struct model *model, const char **separator)
{
    unsigned csi_nodes = model->driver_share > 0 ? model->nodes : 0;
    unsigned volumes = model->has_volumes ? model->claims : 0;

    return put_all(model, model_put_node, model->nodes, separator) &&
           put_all(model, model_put_csi_node, csi_nodes, separator) &&
           put_all(model, model_put_stateful_claim, model->claims, separator) &&
           put_all(model, model_put_stateful_volume, volumes, separator) &&
           put_all(model, model_put_stateful_pod, model->pods, separator);
}

static bool put_objects(const struct model *model)
{
    const char *separator = "";

    if (model->set_pods != 0)
        return put_stateful(model, &separator);
    return model->deployments == 0 ? put_plain(model, &separator) : put_real(model, &separator);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"nodes", required_argument, NULL, 'n'},
        {"pods", required_argument, NULL, 'p'},
        {"claims", required_argument, NULL, 'c'},
        {"exclusive", required_argument, NULL, 'e'},
        {"pending", required_argument, NULL, 'w'},
        {"seed", required_argument, NULL, 's'},
        {"volumes", no_argument, NULL, 'v'},
        {"drivers", required_argument, NULL, 'd'},
        {"deployments", required_argument, NULL, 'D'},
        {"stateful", required_argument, NULL, 'S'},
        {"labels", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    struct model model = {.nodes = 5000,
                          .pods = 150000,
                          .claims = 150000,
                          .exclusive_share = 0.5,
                          .pending_share = 0.1,
                          .seed = 1};
    int chosen;

    while ((chosen = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (chosen) {
        case 'n': model.nodes = number(optarg); break;
        case 'p': model.pods = number(optarg); break;
        case 'c': model.claims = number(optarg); break;
        case 'e': model.exclusive_share = strtod(optarg, NULL); break;
        case 'w': model.pending_share = strtod(optarg, NULL); break;
        case 'd': model.driver_share = strtod(optarg, NULL); break;
        case 'D': model.deployments = number(optarg); break;
        case 'S': model.set_pods = number(optarg); break;
        case 'l': model.has_labels = true; break;
        case 'v': model.has_volumes = true; break;
        case 's': model.seed = number(optarg); break;
        default: return 2;
        }
    }
    (void)fputs("{\"apiVersion\":\"v1\",\"items\":[\n", stdout);
    bool ok = put_objects(&model);
    (void)fputs("\n],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"\"}}\n", stdout);
    return ok && fflush(stdout) == 0 ? 0 : 1;
}
