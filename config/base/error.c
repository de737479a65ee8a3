#include "config/base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* A message that fills the room was perhaps cut inside a character of UTF-8: its beginning goes. */
static void end_with_character(struct error *err)
{
    size_t len = strlen(err->message), start = len;

    if (len + 1 != sizeof err->message)
        return;
    while (start > 0 && len - start < 3 && ((unsigned char)err->message[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)err->message[start - 1];
    size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (bytes > len - start + 1)
        err->message[start - 1] = '\0';
}

int error_set(struct error *err, int code, const char *format, ...)
{
    va_list args;

    err->code = code;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    end_with_character(err);
    return code;
}

/* Appends ": text" to the message, cut to fit. */
static void append(struct error *err, const char *text)
{
    size_t at = strlen(err->message);
    int written = snprintf(err->message + at, sizeof err->message - at, ": %s", text);
    if (written < 0)
        err->message[at] = '\0';
    end_with_character(err);
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
