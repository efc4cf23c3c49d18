#include "web/pages.h"

#include <string.h>

#define EMBEDDED(name)                                                                             \
    extern const unsigned char sl_static_##name[];                                                 \
    extern const unsigned sl_static_##name##_len;
EMBEDDED(index_html)
EMBEDDED(style_css)
EMBEDDED(dygraph_min_js)
EMBEDDED(app_js)
EMBEDDED(api_js)
EMBEDDED(chart_js)
EMBEDDED(dom_js)
EMBEDDED(job_js)
EMBEDDED(log_js)
EMBEDDED(series_js)
EMBEDDED(THIRD_PARTY)

int sl_page_find(const char *path, struct sl_page *ret)
{
#define PAGE(path, type, name)                                                                     \
    {                                                                                              \
        path, { type "; charset=utf-8", sl_static_##name, sl_static_##name##_len }                 \
    }
#define JS(name) PAGE("/" #name ".js", "text/javascript", name##_js)
    const struct {
        const char *path;
        struct sl_page page;
    } all[] = {
        PAGE("/", "text/html", index_html),
        PAGE("/style.css", "text/css", style_css),
        PAGE("/dygraph.min.js", "text/javascript", dygraph_min_js),
        PAGE("/THIRD_PARTY", "text/plain", THIRD_PARTY),
        JS(app),
        JS(api),
        JS(chart),
        JS(dom),
        JS(job),
        JS(log),
        JS(series),
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].path, path)) {
            *ret = all[i].page;
            return 1;
        }
    return 0;
}
