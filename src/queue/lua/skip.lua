-- ARGV: a cluster id. The next one that is given is higher.
local last = tonumber(call('HGET', K .. 'meta', 'cluster') or '0')
if last < tonumber(ARGV[1]) then call('HSET', K .. 'meta', 'cluster', ARGV[1]) end
return 1
