# A cable with a delay, for kernels without netem: what goes into either of two tun devices comes out of the other later.
# Arguments: milliseconds, the names of the devices. It makes them, says so, and ends with its standard input.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my ($ms, @names) = @ARGV;
my ($TUNSETIFF, $TUN_WITHOUT_HEADER) = (0x400454ca, 0x1001);
my @ends = map {
  sysopen(my $end, '/dev/net/tun', 2) or die "/dev/net/tun: $!";
  ioctl($end, $TUNSETIFF, pack('a16 s x22', $_, $TUN_WITHOUT_HEADER)) or die "$_: $!";
  $end;
} @names;
$| = 1;
print "laid\n";

my @flying;
for (;;) {
  my $now = clock_gettime(CLOCK_MONOTONIC);
  while (@flying && $flying[0]{due} <= $now) {
    my $packet = shift @flying;
    # A device that is down takes nothing: the packet is lost, as it should be.
    syswrite $packet->{to}, $packet->{bytes};
  }
  my $bits = '';
  vec($bits, fileno($_), 1) = 1 for *STDIN, @ends;
  select(my $ready = $bits, undef, undef, @flying ? $flying[0]{due} - $now : undef);
  exit if vec($ready, fileno(STDIN), 1);
  for my $n (0, 1) {
    next unless vec($ready, fileno($ends[$n]), 1) && sysread $ends[$n], my $bytes, 65_536;
    push @flying, { due => clock_gettime(CLOCK_MONOTONIC) + $ms / 1000, to => $ends[1 - $n], bytes => $bytes };
  }
}
