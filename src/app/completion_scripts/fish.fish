function __satrap_at
    set -l words (string match -v -- '-*' (commandline -opc)[2..])
    set -l depth (count $argv)
    test (count $words) -ge $depth; and test "$words[1..$depth]" = "$argv"
end
function __satrap_ends_at
    set -l words (string match -v -- '-*' (commandline -opc)[2..])
    test "$words" = "$argv"
end
complete -c satrap -f
