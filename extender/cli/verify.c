/* The command `verify`: what doctor reads and finds, and races in a namespace of its own. */
#include <stdio.h>

#include "config/base/quantity.h"
#include "extender/cli/examine.h"
#include "extender/commands/verify/reach.h"
#include "extender/report/sheet.h"

#define TIMEOUT "3m"

enum { TIMEOUT_MIN_MS = 10000, TIMEOUT_MAX_MS = 3600000 };

struct verification {
    struct examination *examination;
    struct webhook_entries webhooks;
    struct verify_row rows[VERIFY_ROW_COUNT];
    const char *scheduler; /* NULL: none is tried */
    int64_t timeout_ms;
};

/* ---- rows ---- */

static int read_timeout(struct verification *verification, struct error *err)
{
    const char *text = verification->examination->arguments->timeout;

    if (!quantity_duration_ms(&verification->timeout_ms, slice_of(text == NULL ? TIMEOUT : text)) ||
        verification->timeout_ms < TIMEOUT_MIN_MS || verification->timeout_ms > TIMEOUT_MAX_MS)
        return command_misused("verify", "--timeout: expected a duration from 10s to 1h", err);
    return 0;
}

static void choose_rows(struct verification *verification)
{
    const struct arguments *arguments = verification->examination->arguments;
    struct gaps *gaps = &verification->examination->findings.gaps;

    verification->scheduler = arguments->scheduler;
    for (int i = 0; i < VERIFY_ROW_COUNT; i++)
        verification->rows[i].is_asked = i <= VERIFY_NODE_NAME;
    verification->rows[VERIFY_SCHEDULER].is_asked = arguments->scheduler != NULL;
    verification->rows[VERIFY_AWAY].is_asked = arguments->without_claimguard;
    if (arguments->scheduler == NULL)
        gaps_add(gaps, 0, "%s (--scheduler NAME)", verify_who_text(VERIFY_SCHEDULER));
    if (!arguments->without_claimguard)
        gaps_add(gaps, 0, "%s (--without-claimguard)", verify_who_text(VERIFY_AWAY));
}

/* What the webhooks that review the namespace say; nobody is stopped for it. */
static void read_policy(struct verification *verification, const char *ns)
{
    static const char *const texts[] = {
        [REVIEW_NONE] = "no webhook reviews Bindings",
        [REVIEW_OR_IGNORE] = "failurePolicy is Ignore: Bindings are applied",
        [REVIEW_OR_FAIL] = "failurePolicy is Fail: no pod is bound",
    };
    struct verify_row *row = &verification->rows[VERIFY_AWAY];
    enum review review = webhook_entries_review(&verification->webhooks, slice_of(ns));

    if (!installation_knows(&verification->examination->installation, KIND_WEBHOOKS)) {
        row->seen = SLICE("the webhooks may not be read");
        return;
    }
    row->holds = review == REVIEW_OR_FAIL ? HOLDS_YES : HOLDS_NO;
    row->seen = slice_of(texts[review]);
}

static int try_rows(struct verification *verification, struct trial *trial, struct error *err)
{
    struct findings *findings = &verification->examination->findings;

    webhook_entries_read(&verification->webhooks, &verification->examination->installation,
                         findings);
    read_policy(verification, trial->name);
    if (races_run(trial, verification->scheduler, verification->rows, err) < 0 ||
        reach_explain(trial, &verification->webhooks, verification->rows, findings, err) < 0)
        return err->code;
    return findings->has_failed || findings->gaps.has_failed ? error_no_memory(err) : 0;
}

static int try_in_trial(struct verification *verification, struct api *api, struct error *err)
{
    struct error problem = {0};
    struct trial trial;

    api->interrupt = command_catch_signals(true);
    int rc = trial_begin(&trial, api, verification->timeout_ms, err);
    if (rc == 0)
        rc = try_rows(verification, &trial, err);
    if (trial_end(&trial, &problem) < 0)
        (void)fprintf(stderr, "claimguard: verify: %s\n", problem.message);
    return rc;
}

/* ---- the result ---- */

static const char *const words[] = {
    [HOLDS_NOT_TRIED] = "not tried", [HOLDS_NO] = "no", [HOLDS_YES] = "yes"};

static bool print_rows(const struct verification *verification)
{
    static const char *const headings[] = {"HOLDS", "WHO BINDS THE PODS", "SEEN", NULL};
    struct sheet_style style = sheet_style(stdout);
    struct sheet sheet = {0};
    bool ok = sheet_add(&sheet, headings);

    for (int i = 0; i < VERIFY_ROW_COUNT && ok; i++) {
        const struct verify_row *result = &verification->rows[i];
        struct row row = {.count = 0};
        if (!result->is_asked)
            continue;
        row_text(&row, slice_of(words[result->holds]));
        row_text(&row, slice_of(verify_who_text((enum verify_who)i)));
        row_text(&row, result->seen);
        ok = row_end(&row, &sheet);
    }
    ok = ok && sheet_print(&sheet, &style, stdout) && fputs("\n", stdout) >= 0;
    sheet_dispose(&sheet);
    return ok;
}

static bool print_values(const struct verification *verification)
{
    struct fields out;

    fields_begin(&out, verification->examination->format, stdout);
    fields_open(&out, NULL, '{');
    fields_open(&out, "rows", '[');
    for (int i = 0; i < VERIFY_ROW_COUNT; i++) {
        const struct verify_row *row = &verification->rows[i];
        if (!row->is_asked)
            continue;
        fields_open(&out, NULL, '{');
        fields_text(&out, "who", slice_of(verify_who_text((enum verify_who)i)));
        fields_text(&out, "holds", slice_of(words[row->holds]));
        fields_text(&out, "seen", row->seen);
        fields_close(&out);
    }
    fields_close(&out);
    findings_put(&out, &verification->examination->findings);
    return fields_end(&out);
}

static int print(struct verification *verification, struct error *err)
{
    struct findings *findings = &verification->examination->findings;
    enum output_format format = verification->examination->format;

    findings_sort(findings);
    findings->command = "doctor"; /* whose --explain has the pages */
    bool is_written = format == OUTPUT_TABLE
                          ? print_rows(verification) && findings_print(findings, format)
                          : print_values(verification);
    return is_written ? 0 : error_set(err, ERROR_SYSTEM, "the result could not be written");
}

static int exit_status(const struct verification *verification)
{
    int status = findings_fail(&verification->examination->findings) ? EXIT_NO : EXIT_DONE;
    bool is_untried = false;

    for (int i = 0; i < VERIFY_ROW_COUNT; i++)
        if (verification->rows[i].is_asked) {
            status = verification->rows[i].holds == HOLDS_NO ? EXIT_NO : status;
            is_untried = is_untried || verification->rows[i].holds == HOLDS_NOT_TRIED;
        }
    return status == EXIT_DONE && is_untried ? EXIT_USAGE : status;
}

/* ---- all ---- */

/* The texts of what was seen are in the arena of the API. */
static int verify_on(struct verification *verification, struct error *err)
{
    const struct kubeconfig *kubeconfig =
        verification->examination->installation.inquiry.kubeconfig;
    struct api api;
    int rc = api_open(&api, kubeconfig, err);

    if (rc == 0)
        rc = try_in_trial(verification, &api, err);
    if (rc == 0)
        rc = print(verification, err);
    api_close(&api);
    return rc < 0 ? error_wrap(err, "verify") : exit_status(verification);
}

static int verify(struct verification *verification, struct error *err)
{
    struct examination *examination = verification->examination;

    examination->needs_cluster = true;
    examination->findings.fail_on = LEVEL_NEVER;
    examination->findings.disabled = GAP_RULES(CG903, CG905);
    if (read_timeout(verification, err) < 0 || examination_read(examination, err) < 0 ||
        examination_check(examination, err) < 0)
        return err->code;
    choose_rows(verification);
    return verify_on(verification, err);
}

int command_verify(const struct arguments *arguments, struct error *err)
{
    struct verification verification = {.examination = NULL};

    if (examination_open(&verification.examination, arguments, "verify", err) < 0)
        return err->code;
    int rc = verify(&verification, err);
    examination_close(verification.examination);
    return rc;
}
