#ifndef SL_WEB_PAGES_H
#define SL_WEB_PAGES_H

/* pages.h - the files of the page, embedded at build time from web/static/ */

struct sl_page {
    const char *type;
    const unsigned char *body; /* lives for ever */
    unsigned len;
};

int sl_page_find(const char *path, struct sl_page *ret); /* 1: found, 0: not */

#endif
