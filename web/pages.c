#include "web/pages.h"

#include <string.h>

#define EMBEDDED(name)                                                                             \
    extern const unsigned char sl_static_##name[];                                                 \
    extern const unsigned sl_static_##name##_len;
EMBEDDED(index_html)
EMBEDDED(app_js)
EMBEDDED(chart_js)
EMBEDDED(style_css)

int sl_page_find(const char *path, struct sl_page *ret)
{
#define JS "text/javascript; charset=utf-8"
    const struct {
        const char *path;
        struct sl_page page;
    } all[] = {
        {"/", {"text/html; charset=utf-8", sl_static_index_html, sl_static_index_html_len}},
        {"/app.js", {JS, sl_static_app_js, sl_static_app_js_len}},
        {"/chart.js", {JS, sl_static_chart_js, sl_static_chart_js_len}},
        {"/style.css", {"text/css; charset=utf-8", sl_static_style_css, sl_static_style_css_len}},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].path, path)) {
            *ret = all[i].page;
            return 1;
        }
    return 0;
}
