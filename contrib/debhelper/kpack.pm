# SPDX-License-Identifier: MIT
# debhelper's sequence kpack: dh --with kpack, or Build-Depends: dh-sequence-kpack.

use strict;
use warnings;
use Debian::Debhelper::Dh_Lib;

# The debugging information of the host's code has gone by then, and the files of packages
# are not looked at yet.
insert_after('dh_strip', 'dh_kpack');

1;
