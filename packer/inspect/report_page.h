/* SPDX-License-Identifier: MIT */
/* The page of kpack report: report.html, report.css and report.js, which the Makefile embeds. */
#ifndef PACKER_INSPECT_REPORT_PAGE_H
#define PACKER_INSPECT_REPORT_PAGE_H

extern const char report_page_html[], report_page_css[], report_page_js[];

#endif
