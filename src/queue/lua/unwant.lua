-- ARGV: cluster, now (ms), procs. Marks those that are not created yet, to be removed as they are; returns the others.
local cluster = ARGV[1]
local at, total = unpack(call('HMGET', K .. 'c:' .. cluster, 'next', 'total'))
local late = at and call('ZSCORE', K .. 'late', cluster)
local marked, others = {}, {}
for i = 3, #ARGV do
  local proc = tonumber(ARGV[i])
  local waits = late and proc >= tonumber(at) and proc < tonumber(total)
  local list = waits and marked or others
  list[#list + 1] = ARGV[i]
end
if #marked > 0 then
  mark(K .. 'u:' .. cluster, marked, true)
  event(ARGV[2], 'cluster-edited', '"cluster":' .. cluster .. ',"set":{}')
end
return others
