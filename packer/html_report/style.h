/* SPDX-License-Identifier: MIT */
/* How a page looks, and what its script does. */
#ifndef PAGE_STYLE_H
#define PAGE_STYLE_H

extern const char page_style[];
/* Sorting, tooltips and zoom: nothing that the page cannot be read without. */
extern const char page_script[];

#endif
