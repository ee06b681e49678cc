/* SPDX-License-Identifier: MIT */
/* The style and the script of a report; the Makefile embeds report.css and report.js. */
#ifndef PACKER_HTML_REPORT_STYLE_H
#define PACKER_HTML_REPORT_STYLE_H

extern const char page_style[];
/* Sorting, tooltips and zoom.  The report can be read without it. */
extern const char page_script[];

#endif
