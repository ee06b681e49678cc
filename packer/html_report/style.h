/* SPDX-License-Identifier: MIT */
/* The style and the script of a report; the Makefile embeds report.css and report.js. */
#ifndef PAGE_STYLE_H
#define PAGE_STYLE_H

extern const char page_style[];
/* Sorting, tooltips and zoom.  The report can be read without it. */
extern const char page_script[];

#endif
