-- ARGV: now (ms), history file, its size including these jobs, then cluster, proc of each, all of them in that file.
-- Returns how many left the queue.
local gone = {}
for i = 4, #ARGV, 2 do
  local job = load(ARGV[i], ARGV[i + 1])
  if job and ENDS[job.state] then
    leave(job)
    call('HDEL', K .. 'j:' .. job.cluster, job.proc)
    gone[#gone + 1] = '"' .. job.cluster .. '.' .. job.proc .. '"'
    local candidates = candidatesOf(job.cluster, job.proc)
    if candidates then saveCandidates(job.cluster, job.proc, candidates) end
    sweep(job.cluster)
  end
end
call('HSET', K .. 'history', 'file', ARGV[2], 'size', ARGV[3])
if #gone > 0 then event(ARGV[1], 'retired', '"jobs":[' .. table.concat(gone, ',') .. ']') end
return #gone
