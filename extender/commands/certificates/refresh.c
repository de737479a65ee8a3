#include "extender/commands/certificates/refresh.h"

#include <stdio.h>
#include <time.h>

const char *certificate_text(enum certificate certificate)
{
    static const char *const texts[CERTIFICATE_COUNT] = {"authority", "server", "client"};
    return texts[certificate];
}

const char *action_text(enum action action)
{
    static const char *const texts[] = {"kept", "created", "renewed", "updated"};
    return texts[action];
}

void certificates_wipe(struct certificates *certificates)
{
    for (int i = 0; i < CERTIFICATE_COUNT; i++)
        pem_pair_wipe(&certificates->entries[i].pair);
}

int service_hosts(struct hosts *out, const char *ns, struct error *err)
{
    static const char *const here[] = {"claimguard", "localhost", "127.0.0.1", "::1"};
    static const char *const suffixes[] = {".svc", ".svc.cluster.local", ""};
    char name[HOST_BYTES + 64];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(name, sizeof name, "claimguard.%s%s", ns, suffixes[i]);
        if (hosts_add(out, name, err) < 0)
            return err->code;
    }
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (hosts_add(out, here[i], err) < 0)
            return err->code;
    return 0;
}

/* Whether its end is near; then the reason says when it is. */
static bool ends_soon(struct certificate_entry *entry, const struct validity *validity,
                      const struct certificate_terms *terms)
{
    int64_t before_s = terms->renew_before_s != 0
                           ? terms->renew_before_s
                           : (validity->until_s - validity->from_s) / LIFE_PARTS;
    time_t until = (time_t)validity->until_s;
    struct tm tm;
    char date[16] = "";

    if (validity->until_s - terms->now_s > before_s)
        return false;
    if (gmtime_r(&until, &tm) != NULL)
        (void)strftime(date, sizeof date, "%Y-%m-%d", &tm);
    (void)snprintf(entry->reason, sizeof entry->reason, "%s %s",
                   validity->until_s > terms->now_s ? "it would have ended on" : "it ended on",
                   date);
    return true;
}

/* ---- the authority ---- */

/* Fails if one of the two is there without the other. */
static int check_whole(const struct pem_pair *authority, struct error *err)
{
    bool lacks_key = authority->key == NULL;

    if (lacks_key == (authority->crt == NULL))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%s is there without %s: restore that, or remove both, and all that the "
                     "authority has signed, for a new one",
                     lacks_key ? authority->crt_name : authority->key_name,
                     lacks_key ? authority->key_name : authority->crt_name);
}

/* Fails if there is a certificate that no authority of ours has signed. */
static int check_none_signed(const struct certificates *certificates, struct error *err)
{
    const struct pem_pair *authority = &certificates->entries[CERTIFICATE_AUTHORITY].pair;

    for (int i = CERTIFICATE_AUTHORITY + 1; i < CERTIFICATE_COUNT; i++) {
        const struct pem_pair *pair = &certificates->entries[i].pair;
        if (pair->crt != NULL)
            return error_set(err, ERROR_INVALID,
                             "%s is there without its authority: restore %s and %s, or remove it, "
                             "for a new one",
                             pair->crt_name, authority->crt_name, authority->key_name);
    }
    return 0;
}

static int check_authority(const struct certificate_facts *facts, const struct pem_pair *pair,
                           struct error *err)
{
    if (!facts->is_authority)
        return error_set(err, ERROR_INVALID, "%s: is not the certificate of an authority",
                         pair->crt_name);
    if (!facts->is_pair)
        return error_set(err, ERROR_INVALID, "%s: is not the key of the first certificate in %s",
                         pair->key_name, pair->crt_name);
    return 0;
}

static int refresh_authority(struct certificates *certificates,
                             const struct certificate_terms *terms, struct error *err)
{
    struct certificate_entry *entry = &certificates->entries[CERTIFICATE_AUTHORITY];
    struct validity validity = {terms->now_s - CLOCK_SKEW_S,
                                terms->now_s + terms->authority_life_s};
    struct certificate_facts facts;

    if (check_whole(&entry->pair, err) < 0)
        return err->code;
    if (entry->pair.crt == NULL) {
        entry->action = ACTION_CREATED;
        entry->until_s = validity.until_s;
        return check_none_signed(certificates, err) < 0
                   ? err->code
                   : certificate_make(&entry->pair, NULL,
                                      &(struct wish){validity, "claimguard-ca", NULL}, err);
    }
    if (certificate_read(&facts, &entry->pair, NULL, err) < 0 ||
        check_authority(&facts, &entry->pair, err) < 0)
        return err->code;
    int rc = 1;
    if (ends_soon(entry, &facts.validity, terms))
        rc = authority_renew(&entry->pair, &validity, err);
    if (rc == ERROR_INVALID && facts.validity.until_s > terms->now_s) {
        /* it can sign until then, and a person has to renew it */
        (void)snprintf(entry->reason, sizeof entry->reason, "%.*s", REASON_BYTES - 1, err->message);
        *err = (struct error){0};
        rc = 1;
    }
    entry->action = rc == 0 ? ACTION_RENEWED : ACTION_KEPT;
    entry->until_s = rc == 0 ? validity.until_s : facts.validity.until_s;
    return rc < 0 ? rc : 0;
}

/* ---- what it signs ---- */

/* Whether the certificate that is there cannot stay; then the entry has the reason. */
static bool is_unfit(struct certificate_entry *entry, bool is_server,
                     const struct certificate_facts *facts, const struct certificate_terms *terms)
{
    const char *missing = is_server ? hosts_missing(&facts->hosts, &terms->hosts) : NULL;
    bool is_for_it = is_server ? facts->is_for_servers : facts->is_for_clients;

    if (ends_soon(entry, &facts->validity, terms))
        return true;
    if (!facts->is_pair)
        (void)snprintf(entry->reason, sizeof entry->reason, "it had not its key");
    else if (!is_for_it)
        (void)snprintf(entry->reason, sizeof entry->reason, "it was not for a %s",
                       is_server ? "server" : "client");
    else if (missing != NULL)
        (void)snprintf(entry->reason, sizeof entry->reason, "it was not for %s", missing);
    return entry->reason[0] != '\0';
}

/* The names of the old certificate and those that are wanted. */
static int join_hosts(struct hosts *out, const struct hosts *old, const struct hosts *wanted,
                      struct error *err)
{
    *out = *wanted;
    for (size_t i = 0; i < old->count; i++)
        if (hosts_add(out, old->names[i], err) < 0)
            return err->code;
    return 0;
}

static int make_leaf(struct certificates *certificates, enum certificate which,
                     const struct hosts *hosts, const struct certificate_terms *terms,
                     struct error *err)
{
    const struct certificate_entry *authority = &certificates->entries[CERTIFICATE_AUTHORITY];
    struct certificate_entry *entry = &certificates->entries[which];
    int64_t until_s = terms->now_s + terms->life_s;
    struct wish wish = {
        .validity = {terms->now_s - CLOCK_SKEW_S,
                     until_s < authority->until_s ? until_s : authority->until_s},
        .name = which == CERTIFICATE_SERVER ? "claimguard" : "claimguard-client",
        .hosts = which == CERTIFICATE_SERVER ? hosts : NULL,
    };

    entry->until_s = wish.validity.until_s;
    return certificate_make(&entry->pair, &authority->pair, &wish, err);
}

static int refresh_leaf(struct certificates *certificates, enum certificate which,
                        const struct certificate_terms *terms, struct error *err)
{
    const struct pem_pair *authority = &certificates->entries[CERTIFICATE_AUTHORITY].pair;
    struct certificate_entry *entry = &certificates->entries[which];
    struct certificate_facts facts;
    struct hosts hosts;

    if (entry->pair.crt == NULL) {
        entry->action = ACTION_CREATED;
        return make_leaf(certificates, which, &terms->hosts, terms, err);
    }
    if (certificate_read(&facts, &entry->pair, authority, err) < 0)
        return err->code;
    if (!facts.is_ours)
        return error_set(err, ERROR_INVALID,
                         "%s: is not from the authority in %s: remove it, for a new one",
                         entry->pair.crt_name, authority->crt_name);
    if (!is_unfit(entry, which == CERTIFICATE_SERVER, &facts, terms)) {
        entry->action = ACTION_KEPT;
        entry->until_s = facts.validity.until_s;
        return 0;
    }
    entry->action = ACTION_RENEWED;
    return join_hosts(&hosts, &facts.hosts, &terms->hosts, err) < 0
               ? err->code
               : make_leaf(certificates, which, &hosts, terms, err);
}

/* ---- what cannot be used ---- */

/* Removes a pair that certificates_refresh would refuse; then it is made again. */
static int drop_unusable(struct certificate_entry *entry, const struct pem_pair *authority,
                         struct error *err)
{
    const struct pem_pair *pair = &entry->pair;
    struct certificate_facts facts = {.is_ours = false};
    struct error problem = {0};
    bool is_usable = pair->crt != NULL && certificate_read(&facts, pair, authority, &problem) == 0;

    if (is_usable && (authority == NULL ? facts.is_authority && facts.is_pair : facts.is_ours))
        return 0;
    if (problem.code == ERROR_NO_MEMORY)
        return error_no_memory(err);
    if (pair->crt != NULL || pair->key != NULL)
        (void)snprintf(entry->reason, sizeof entry->reason, "it could not be used%s%.200s",
                       problem.code == 0 ? "" : ": ", problem.message);
    pem_pair_wipe(&entry->pair);
    return 0;
}

int certificates_refresh(struct certificates *certificates, const struct certificate_terms *terms,
                         struct error *err)
{
    struct certificate_entry *entries = certificates->entries;
    const struct pem_pair *authority = &entries[CERTIFICATE_AUTHORITY].pair;

    for (int i = 0; i < CERTIFICATE_COUNT && terms->replaces; i++) {
        bool is_signed = i != CERTIFICATE_AUTHORITY;
        if (is_signed && authority->crt == NULL)
            pem_pair_wipe(&entries[i].pair);
        else if (drop_unusable(&entries[i], is_signed ? authority : NULL, err) < 0)
            return err->code;
    }
    int rc = refresh_authority(certificates, terms, err);

    for (int i = CERTIFICATE_AUTHORITY + 1; i < CERTIFICATE_COUNT && rc == 0; i++)
        rc = refresh_leaf(certificates, (enum certificate)i, terms, err);
    return rc;
}
