-- ARGV: now (ms), history file, its size including these jobs, then for each cluster: cluster, n, and n procs, all of
-- them in that file. Returns how many left the queue.
local gone, i = {}, 4
while i <= #ARGV do
  local cluster, n = ARGV[i], tonumber(ARGV[i + 1])
  local groups, add = grouping()
  local procs = {}
  loadMany(cluster, { unpack(ARGV, i + 2, i + 1 + n) }, function(job)
    if not ENDS[job.head.state] then return end
    add(job, job.head.group)
    procs[#procs + 1] = job.proc
    gone[#gone + 1] = '"' .. cluster .. '.' .. job.proc .. '"'
  end)
  for _, group in ipairs(groups) do leave(group) end
  if #procs > 0 then
    call('HDEL', K .. 'j:' .. cluster, unpack(procs))
    for _, proc in ipairs(procs) do
      local candidates = candidatesOf(cluster, proc)
      if candidates then saveCandidates(cluster, proc, candidates) end
    end
    sweep(cluster)
  end
  i = i + 2 + n
end
call('HSET', K .. 'history', 'file', ARGV[2], 'size', ARGV[3])
if #gone > 0 then event(ARGV[1], 'retired', '"jobs":[' .. table.concat(gone, ',') .. ']') end
return #gone
