-- ARGV: 'acquire', name, now (ms), ttl (ms), holder, force ('1'). Returns the new epoch, or false while another holds
-- it.
-- ARGV: 'renew', name, now, ttl, epoch. Returns 1, or 0 if another process has the lease. ARGV: 'release', name, now,
-- 0, epoch.
-- A lease whose start is in the future shows that the clock was set back: it counts as expired, and the epoch protects
-- what it guarded.
local what, name, now, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local held = call('HGET', K .. 'leases', name)
if what == 'acquire' then
  if held and ARGV[6] ~= '1' then
    local from, to = string.match(held, '^(%d+)|(%d+)|')
    if tonumber(from) <= now and now < tonumber(to) then return false end
  end
  call('HSET', K .. 'leases', name, string.format('%.0f|%.0f|', now, now + ttl) .. ARGV[5])
  return call('HINCRBY', K .. 'epochs', name, 1)
end
if stale(name, ARGV[5]) or not held then return 0 end
if what == 'release' then
  call('HDEL', K .. 'leases', name)
  call('HINCRBY', K .. 'epochs', name, 1)
else
  local holder = string.match(held, '^%d+|%d+|(.*)$')
  call('HSET', K .. 'leases', name, string.format('%.0f|%.0f|', now, now + ttl) .. holder)
end
return 1
