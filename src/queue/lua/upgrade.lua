-- ARGV: now (ms), the version to reach. Carries the state of an earlier version over: of version 1, whose groups are zsets of
-- procs; of version 2, which differs in its files only. Returns 1; 0 while daemons run, which still use the former. Managers of
-- DAGs run on: they know the queue by its scripts alone.
local version = tonumber(call('HGET', K .. 'meta', 'version') or '0')
if version >= tonumber(ARGV[2]) then return 1 end
local leases = call('HGETALL', K .. 'leases')
for i = 1, #leases, 2 do
  local ofDag = version > 1 and string.sub(leases[i], 1, 4) == 'dag:'
  if not ofDag and tonumber(string.match(leases[i + 1], '^%d+|(%d+)|')) > tonumber(ARGV[1]) then return 0 end
end
local function convert(key)
  if call('TYPE', key).ok ~= 'zset' then return end
  local procs = call('ZRANGE', key, 0, -1)
  call('DEL', key)
  for from = 1, #procs, 4000 do mark(key, { unpack(procs, from, math.min(from + 3999, #procs)) }, true) end
end
for _, cluster in ipairs(version == 1 and call('ZRANGE', K .. 'clusters', 0, -1) or {}) do
  for _, field in ipairs(call('HKEYS', K .. 'c:' .. cluster)) do
    if string.byte(field) == 35 then convert(K .. 'g:' .. cluster .. ':' .. string.sub(field, 2)) end
  end
end
for _, cluster in ipairs(version == 1 and call('HKEYS', K .. 'staging') or {}) do
  for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do convert(K .. 'g:' .. cluster .. ':' .. name) end
end
call('HSET', K .. 'meta', 'version', ARGV[2])
return 1
