/* What /metrics says about the server: its connections, configuration, certificate and log. */
#include "config/base/log.h"
#include "extender/http/tls.h"
#include "extender/zpages/scrape_internal.h"

static void put_seconds(const struct scrape *scrape, double seconds)
{
    buf_printf(scrape->out, "%s %.3f\n", scrape->name, seconds);
}

static const char *const ports[PORT_COUNT] = {"extender", "metrics", "admission"};

/* No sample of a port on which nothing listens. */
bool scrape_connections(struct scrape *scrape)
{
    for (int port = 0; port < PORT_COUNT; port++)
        if (scrape->state->metrics.connections_max[port] != 0)
            scrape_put_for(scrape, "port", ports[port],
                           atomic_load(&scrape->state->metrics.connections[port]));
    return false;
}

bool scrape_connections_max(struct scrape *scrape)
{
    for (int port = 0; port < PORT_COUNT; port++)
        if (scrape->state->metrics.connections_max[port] != 0)
            scrape_put_for(scrape, "port", ports[port],
                           scrape->state->metrics.connections_max[port]);
    return false;
}

bool scrape_config_is_good(struct scrape *scrape)
{
    scrape_put_count(scrape, !atomic_load(&scrape->state->metrics.is_config_refused));
    return false;
}

bool scrape_config_loaded(struct scrape *scrape)
{
    put_seconds(scrape, (double)atomic_load(&scrape->state->metrics.config_loaded_ms) / 1e3);
    return false;
}

/* No sample for a port without TLS. */
static void put_end(const struct scrape *scrape, enum port port, struct tls *tls)
{
    if (tls != NULL)
        scrape_put_for(scrape, "port", ports[port], (uint64_t)tls_not_after(tls));
}

bool scrape_certificate_ends(struct scrape *scrape)
{
    put_end(scrape, PORT_EXTENDER, scrape->state->tls);
    put_end(scrape, PORT_ADMISSION, scrape->state->admission_tls);
    return false;
}

bool scrape_log_lines_dropped(struct scrape *scrape)
{
    scrape_put_count(scrape, log_dropped());
    return false;
}
