/* The command `doctor`: applies the rules of extender/commands/doctor to what it is given, and
 * prints what they find. */
#include "extender/cli/examine.h"

static int examine(struct examination *examination, struct error *err)
{
    struct findings *findings = &examination->findings;

    examination->outputs |= OUTPUTS_OF_FINDINGS;
    findings->disabled = GAP_RULES(CG906, CG907);
    if (!examination->arguments->probe)
        findings->disabled |= GAP_RULES(CG903, CG905);
    if (examination_read(examination, err) < 0 || examination_check(examination, err) < 0)
        return err->code;
    findings_sort(findings);
    if (!findings_print(findings, examination->format))
        return error_set(err, ERROR_SYSTEM, "the result could not be written");
    return findings_fail(findings) ? EXIT_NO : EXIT_DONE;
}

int command_doctor(const struct arguments *arguments, struct error *err)
{
    struct examination *examination;

    if (arguments->explain != NULL)
        return rules_explain(doctor_rules, arguments->explain, err);
    if (examination_open(&examination, arguments, "doctor", err) < 0)
        return err->code;
    int rc = examine(examination, err);
    examination_close(examination);
    return rc;
}
