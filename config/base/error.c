#include "config/base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    va_list args;

    err->code = code;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

/* Appends ": text" to the message, cut to fit. */
static void append(struct error *err, const char *text)
{
    size_t at = strlen(err->message);
    int written = snprintf(err->message + at, sizeof err->message - at, ": %s", text);
    if (written < 0)
        err->message[at] = '\0';
}

int error_wrap(struct error *err, const char *format, ...)
{
    char inner[ERROR_MESSAGE_BYTES];
    va_list args;

    memcpy(inner, err->message, sizeof inner);
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    append(err, inner);
    return err->code;
}

int error_system(struct error *err, int number, const char *format, ...)
{
    char reason[128];
    va_list args;

    err->code = ERROR_SYSTEM;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    append(err, strerror_r(number, reason, sizeof reason));
    return err->code;
}

int error_no_memory(struct error *err)
{
    return error_set(err, ERROR_NO_MEMORY, "out of memory");
}
