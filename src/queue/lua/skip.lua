-- ARGV: a cluster id. The next cluster's id is higher.
local last = tonumber(call('HGET', K .. 'meta', 'cluster') or '0')
if last < tonumber(ARGV[1]) then call('HSET', K .. 'meta', 'cluster', ARGV[1]) end
return 1
