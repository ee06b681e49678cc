/* SPDX-License-Identifier: MIT */
/* The cases of content.c, in the language that is described there. */

/* The second file is damaged: nothing of it is given away, of the first one all. */
#define UNCHECKED(size, facts, budget)                                                   \
	"file 1 " size " whole 1 " facts " file 2 " size " whole 1 bad_sum 1 " facts     \
	" make " budget " 1 i 1 2 ( get 1 0 10K bad 2 0 10K bad 2 2M 100 ) all 1 96K "   \
	"errors = 4 failures = 4"

static const struct {
	const char *name, *script;
} cases[] = {
	/* entries that are held whole */
	{"all bytes of a small file are served, and nothing is kept",
	 "file 1 100K+1 make 1M 1 all 1 4K opened 1 = 1 held = 0 bytes_served = 100K+1 "
	 "now 1 100K+1 10 now 1 100K-2 10 now 1 0-2 10 opened 1 = 2"},
	{"first bytes before the last",
	 "file 2 3M make 64M 1 ask 2 3M-10 10 ask 2 0 128K answered = 0 "
	 "at 2 2 ( answered = 1 now 2 100 100 ) run answered = 3 all 2 128K opened 2 = "
	 "1"},
	{"one decode for many readers", "file 3 20M+77 make 64M 2 i 0 213 ( j 1 8 ( ask "
					"3 i*96K 96K ) run ) opened 3 = 1 "
					"decodes = 1"},
	{"a small read waits for the reader that decodes, but blocks nobody",
	 "file 4 1000 make 1M 1 at 4 1 ( ask 4 5 50 answered = 0 ) ask 4 5 50 answered = "
	 "2 "
	 "opened 4 = 1"},
	{"damage in a large file",
	 "file 5 3M fails 1M file 6 500 make 64M 1 ask 5 0 4K ask_bad 5 2M 4K "
	 "ask_bad 5 3M-1 1 run failures = 1 errors = 1 bad 5 2M 4K opened 5 = 2 all 6 "
	 "500 "
	 "held = 0"},
	{"damage in a small file",
	 "file 5 100 fails 0 make 1M 1 bad 5 0 100 failures = 1 held = 0"},
	{"decodes wait for memory",
	 "files 0 5 4M make 10M 4 i 0 5 ( ask i 4M-100 100 ) at 0 3 ( run held <= 10M ) "
	 "at 1 3 ( run held <= 10M ) run answered = 6 most_running = 2 held_most <= 10M"},
	{"a small read is not served before one that finds no room",
	 "file 1 7M file 2 6M chunk 6M file 3 100 make 8M 2 ask 1 0 10 "
	 "at 1 2 ( answered = 1 now 3 0 100 ask 2 0 10 run ask 3 0 100 answered = 2 ) "
	 "run "
	 "answered = 4"},
	{"as many decoders work as there is room for",
	 "file 0 7M files 1 4 1M make 8M 4 i 0 4 ( ask i 0 10 ) at 1 2 ( run ) at 2 2 ( "
	 "run ) "
	 "at 3 2 ( run ) at 0 2 ( run opened 1 = 0 ) run most_running = 4"},
	{"more memory is used at once", "files 1 2 3M make 16M 2 shrink 25 i 1 2 ( ask i "
					"0 10 ) at 1 2 ( run opened 2 = 0 "
					"shrink 100 run opened 2 = 1 ) run"},
	{"what is served whole is kept for readers close behind",
	 "file 1 300K make 64M 1 all 1 64K held = 300K now 1 0 10 opened 1 = 1"},
	{"the least recently used piece goes first",
	 "files 0 2 3200K make 8M 1 i 0 2 ( get i 0 10 ) now 2 100 10 now 1 100 10 "
	 "opened 1 = 1 get 0 100 10 opened 0 = 2 crowded_out = 2"},
	{"what was served whole goes before",
	 "files 0 2 3200K make 8M 1 get 0 0 10 all 1 100K get 2 0 10 now 0 10 10"},
	{"memory is given back after a time",
	 "file 1 4M file 2 4M make 64M 1 all 1 128K get 2 0 10 held = 8M time 3 held = "
	 "4M "
	 "expired = 1 time 55 held = 4M time 6 held = 0 expired = 2 open_decoders = 0"},
	{"what was served whole has few bytes",
	 "files 1 4 3M make 64M 1 i 1 4 ( all i 128K ) held <= 7M crowded_out = 3"},
	{"what decoders hold is counted: the second file waits, although it would fit",
	 "files 1 2 5M-2 decoder 6M make 16M 2 ask 1 0 4K ask 2 0 4K at 1 2 ( run "
	 "answered = 1 ) run answered = 2 most_running = 1 held_most = 16M held = 10M"},
	{"each file of a changing archive is checked before and after its decode",
	 "file 1 3M file 2 1000 file 3 40M window 2M make 16M 2 get 1 0 1000 "
	 "get 1 3M-10 10 get 3 0 10 change io 2 0 1000 io 3 30M 10 now 1 1M 1000 "
	 "changes = 1 changed = 2 failures = 2 forget now 1 2M 1000 io 2 0 1000 changes "
	 "= 2"},
	{"bytes that are decoded while the archive changes are not served",
	 "file 1 3M make 16M 1 ask 1 0 1000 ask_io 1 2M 1000 at 1 2 ( answered = 1 "
	 "change ) "
	 "run changes = 1 changed = 1"},
	{"counts",
	 "file 1 3M file 2 10 fails 0 make 16M 1 get 1 3M-1 1 now 1 0 100 now 1 1M 100 "
	 "bad 2 0 10 reads = 3 hits = 2 bytes_served = 201 decodes = 1 bytes_decoded = "
	 "3M "
	 "errors = 1 corrupt = 1 held = 3M held_most = 3M+4K"},
	{"memory pressure",
	 "file 1 10M file 2 70M window 2M make 64M 1 get 1 10M-1 1 get 2 0 10 held >= "
	 "10M "
	 "shrink 50 budget = 32M held = 0 open_passes = 0 open_decoders = 0 shrink 0 "
	 "budget = 0 all 1 128K all 2 128K shrink 100 budget = 64M all 1 128K"},
	{"an end while reads wait", "files 0 2 2000M window 1M make 1M 1 i 0 2 ( ask_io "
				    "i 2000M-1 1 ) at 0 3 ( stop ) "
				    "run free failures = 0"},
	{"an end in a large file", "file 0 3M make 16M 2 ask 0 0 10 ask_io 0 3M-1 1 "
				   "at 0 3 ( stop ) run free failures = 0"},
	/* the checksum of all bytes */
	{"nothing before the checksum: held whole", UNCHECKED("3M", "", "64M")},
	{"nothing before the checksum: small pieces",
	 UNCHECKED("3M", "chunk 64K", "64M")},
	{"nothing before the checksum: a pass", UNCHECKED("5M", "window 1M", "64M")},
	{"nothing before the checksum: too large", UNCHECKED("30M", "window 1M", "16M")},
	{"nothing before the checksum: plain", "plain " UNCHECKED("3M", "", "64M")},
	{"nothing before the checksum: plain pieces",
	 "plain " UNCHECKED("30M", "", "16M")},
	/* chunks and other pieces that are read alone */
	{"a read of four chunks",
	 "file 7 100K+5 chunk 16K make 1M 1 now 7 60K 100K opened 7 = 4 now 7 10 20 "
	 "opened 7 = 5 now 7 0 100K+5"},
	{"large chunks", "file 7 5M+5 chunk 1M make 2M 2 all 7 100K all 7 3M"},
	{"large tables are not kept", "files 1 9 256K chunk 64K rows 400000 make 8M 1 i "
				      "1 9 ( all i 64K ) open_tables = 2 "
				      "free open_tables = 0"},
	{"few tables are kept",
	 "files 0 99 256K chunk 64K make 8M 1 i 0 99 ( all i 64K ) "
	 "open_tables = 32"},
	{"no table of an idle archive is kept",
	 "files 1 2 256K chunk 64K make 8M 1 all 1 64K open_tables = 1 idle 1 forget "
	 "open_tables = 0 all 2 64K open_tables = 0"},
	{"a damaged chunk", "file 8 64K chunk 16K fails 32K make 1M 1 now 8 0 32K bad 8 "
			    "16K 32K failures = 1"},
	{"an absurd chunk", "file 8 64K chunk 1 make 1M 1 format 8 0 10 failures = 1"},
	{"an absurd chunk, which would not be held",
	 "file 8 256M window 2M chunk 128M make 16M 2 format 8 0 10 failures = 1"},
	{"chunks that are too large are not held",
	 "file 1 40M window 2M chunk 20M make 16M 2 all 1 128K opened 1 = 1 held_most <= "
	 "16M"},
	{"plain bytes are read where they are",
	 "plain file 1 40M make 16M 2 now 1 39M 4K opened 1 = 1 bytes_decoded <= 256K "
	 "all 1 200K passes = 0"},
	{"pieces of shared archives are small, or blocks",
	 "blocks 512K file 1 4M make 16M 1 now 1 2M 4K bytes_decoded = 64K get 1 0 4K "
	 "bytes_decoded = 576K all 1 96K passes = 0"},
	/* passes */
	{"a file that is larger than the budget",
	 "file 1 40M+77 window 2M file 2 1000 make 16M 2 all 1 128K now 2 0 1000 opened "
	 "1 = 1 "
	 "passes = 1 restarts = 0 held_most <= 16M"},
	{"a pass does not run ahead", "file 1 100M window 2M make 16M 2 get 1 0 128K "
				      "bytes_decoded <= 4M get 1 10M 128K "
				      "bytes_decoded <= 16M opened 1 = 1"},
	{"any budget will do",
	 "file 1 20M window 8M file 2 9M window 2M i 0 2 ( make i*i*256K 2 all 1 128K "
	 "all 2 100K opened 1 = i+1 opened 2 = i+1 held_most <= 14M free )"},
	{"requests out of order, as of the kernel",
	 "file 1 40M window 2M make 16M 2 i 0 19 ( j 0 15 ( ask 1 j*7%16*128K+i*2M 128K "
	 ") "
	 "run ) opened 1 = 1"},
	{"many readers of a large file",
	 "file 3 40M window 2M make 16M 2 i 0 426 ( j 1 4 ( ask 3 i*96K 96K ) run ) "
	 "opened 3 = 1 held_most <= 16M"},
	{"two readers far apart", "file 1 60M window 2M make 16M 2 i 0 239 ( ask 1 "
				  "i*128K 128K ask 1 i*128K+30M 128K "
				  "run ) opened 1 <= 3 restarts <= 2"},
	{"one pass for two readers", "file 1 20M window 8M make 8M 2 i 0 31 ( ask 1 "
				     "i*128K 128K ask 1 i*128K+15M 128K run "
				     ") held_most <= 14M"},
	{"files that would displace each other are cut, except the first ones",
	 "files 1 3 24M window 1M make 32M 2 i 0 47 ( j 1 3 ( get j i*512K 512K ) ) "
	 "bytes_decoded <= 96M restarts = 0 held_most <= 32M"},
	{"little memory in order",
	 "file 1 200M+77 window 2M make 256M 2 all 1 128K opened 1 = 1 "
	 "bytes_decoded = 200M+77 held_most <= 16M"},
	{"a jump has the file decoded as a whole, once",
	 "files 1 2 40M window 2M make 256M 2 get 1 0 4K i 1 39 ( get 1 i*27%40*1M 4K ) "
	 "opened 1 = 2 get 2 20M 4K all 2 128K opened 2 = 1"},
	{"many readers in order: passes do not end each other",
	 "files 0 15 8M-15 window 2M make 64M 2 i 0 15 ( j 0 15 ( get j i*512K 512K ) ) "
	 "bytes_decoded <= 256M held_most <= 64M"},
	{"a reader that goes back takes another pass",
	 "file 1 20M window 2M make 8M 1 get 1 15M 10 restarts = 0 get 1 0 10 passes = 2 "
	 "restarts = 1"},
	{"blocks of shared archives take spare memory at any moment",
	 "i 0 9 ( file 2 5632K file 1 20M window 64K pool 0 0 make 8M 1 get 2 5632K-1 1 "
	 "pool i 2M get 1 0 10 free )"},
	{"passes leave room for blocks", "file 2 5632K file 1 20M window 64K make 8M 1 "
					 "pool 0 2M get 2 5632K-1 1 get 1 0 10 "
					 "held <= 8M pool 0 7M held >= 7M+1 held_most >= "
					 "7M+1 shrink 50 held = 7M pool 0 0"},
	{"what an old pass leaves is freed",
	 "file 1 20M window 64K make 8M 1 get 1 0 10 time 55 open_passes = 1 time 6 "
	 "open_passes = 0 held = 0 time 3 open_decoders = 0"},
	{"a decoder that is just being left is freed, too",
	 "file 1 20M window 64K make 8M 1 get 1 0 10 time 3 at 1 0 ( time 3 ) forget "
	 "time 3 "
	 "open_decoders = 0"},
	{"damage in a file that is too large", "file 1 40M window 2M fails 20M make 16M "
					       "2 get 1 19M 4K failures = 0 bad 1 20M 4K "
					       "failures = 1 corrupt = 1 get 1 0 4K"},
	{"windows that grow",
	 "file 1 20M window 2M wide_at 10M wide 8M make 8M 2 all 1 128K opened 1 >= 2 "
	 "opened 1 <= 3 failures = 0 held_most <= 14M"},
	{"windows that are too wide",
	 "file 1 20M window 8M+1 file 2 20M window 2M wide_at 10M wide 9M make 8M 2 "
	 "bad 1 0 4K opened 1 = 0 get 2 0 4K bad 2 11M 4K failures = 2"},
	/* decoding ahead */
	{"the next entries are decoded ahead",
	 "ahead files 0 15 900K make 64M 2 i 1 3 ( all i 128K ) opened 0 = 0 "
	 "i 4 15 ( opened i = 1 all i 128K opened i = 1 )"},
	{"not all entries are decoded ahead",
	 "ahead files 0 15 3M make 64M 2 i 1 3 ( all i 128K ) j 1 5 ( all 3 128K ) "
	 "i 4 6 ( opened i = 1 ) i 7 15 ( opened i = 0 )"},
	{"small entries are decoded ahead",
	 "ahead files 0 15 100K file 5 3K make 64M 2 i 1 3 ( all i 128K ) opened 5 = 0 "
	 "i 6 15 ( opened i = 1 ) i 4 15 ( all i 128K ) i 1 15 ( opened i = 1 )"},
	{"small entries do not wait for decoders",
	 "ahead files 0 15 100K file 15 1M make 64M 1 at 15 1 ( i 1 3 ( all i 128K ) "
	 "now 4 0 4K opened 4 = 1 ) get 15 0 4K opened 4 = 1"},
	{"few entries wait for the only decoder",
	 "entries 512 ahead files 0 511 100K file 511 1M make 64M 1 at 511 1 ( i 0 14 ( "
	 "j 0 2 ( now i*32+j 0 4K ) ) refs >= 32 refs <= 80 ) get 511 0 4K"},
	{"nothing is decoded ahead in other orders",
	 "ahead files 0 15 2M make 64M 2 i 0 3 ( all 12-i 128K ) i 1 3 ( get i 4K 4K "
	 "get i 1M 4K ) free make 64M 2 i 13 15 ( all i 128K ) opened 0 = 0 "
	 "i 1 3 ( opened i = 1 ) i 4 8 ( opened i = 0 ) i 9 15 ( opened i = 1 )"},
	{"what is asked for comes first",
	 "ahead files 0 15 1M make 64M 1 at 4 1 ( ask 8 0 4K ) at 8 1 ( opened 4 = 1 ) "
	 "i 1 3 ( all i 128K ) all 4 128K opened 4 = 2 opened 8 = 1"},
	{"a reader who comes when the decoder leaves",
	 "ahead files 0 15 1M make 64M 1 at 4 1 ( ask 8 0 4K ) at 4 0 ( ask 4 0 4K ) "
	 "at 8 1 ( opened 4 = 1 answered = 19 ) i 1 3 ( all i 128K ) opened 4 = 2 "
	 "answered = 29"},
	{"a reader who comes meanwhile", "ahead files 0 15 1M make 64M 1 at 4 1 ( ask 4 "
					 "0 4K ask 8 0 4K ) i 1 3 ( all i 128K ) "
					 "opened 4 = 1"},
	{"nothing is decoded ahead without room",
	 "ahead files 0 15 1M file 0 31M make 64M 2 get 0 4K 4K i 1 3 ( all i 128K ) "
	 "i 4 15 ( opened i = 0 )"},
	{"decoders ahead take little memory",
	 "ahead files 0 15 900K file 4 900K decoder 200M make 64M 1 i 1 3 ( all i 128K ) "
	 "opened 4 = 0 i 5 15 ( opened i = 1 ) held_most <= 32M all 4 128K opened 4 = 1"},
	{"damage that is found ahead is not reported",
	 "ahead files 0 15 1M file 4 1M fails 0 make 64M 2 i 1 3 ( all i 128K ) opened 4 "
	 "= 1 "
	 "failures = 0 errors = 0 bad 4 0 4K failures = 1 errors = 1"},
	{"large entries are begun ahead",
	 "ahead files 0 15 40M window 1M make 64M 2 i 1 3 ( all i 128K ) opened 4 = 1 "
	 "opened 5 = 0 held <= 24M all 4 128K opened 4 = 1"},
};
