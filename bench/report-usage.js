// Preloaded into every server: sends its CPU time to the benchmark on request, and ends with it.
process.on('message', () => process.send(process.cpuUsage()))
process.on('disconnect', () => process.exit())
