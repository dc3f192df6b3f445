-- ARGV: now (ms). Changes the state of version 1, whose groups are zsets of procs, to version 2. Returns 0 while daemons
-- run, which still use the former.
for _, held in ipairs(call('HVALS', K .. 'leases')) do
  if tonumber(string.match(held, '^%d+|(%d+)|')) > tonumber(ARGV[1]) then return 0 end
end
local function convert(key)
  if call('TYPE', key).ok ~= 'zset' then return end
  local procs = call('ZRANGE', key, 0, -1)
  call('DEL', key)
  for from = 1, #procs, 4000 do mark(key, { unpack(procs, from, math.min(from + 3999, #procs)) }, true) end
end
for _, cluster in ipairs(call('ZRANGE', K .. 'clusters', 0, -1)) do
  for _, field in ipairs(call('HKEYS', K .. 'c:' .. cluster)) do
    if string.byte(field) == 35 then convert(K .. 'g:' .. cluster .. ':' .. string.sub(field, 2)) end
  end
end
for _, cluster in ipairs(call('HKEYS', K .. 'staging')) do
  for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do convert(K .. 'g:' .. cluster .. ':' .. name) end
end
call('HSET', K .. 'meta', 'version', 2)
return 1
