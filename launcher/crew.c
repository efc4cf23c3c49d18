/* crew.c - meet over the bridge, lay out nodes and ranks, find contradictions */
#include "launcher/crew.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/idset.h"
#include "common/mem.h"
#include "common/proc.h"
#include "launcher/bridge.h"
#include "launcher/hand.h"
#include "launcher/words.h"

static const double meet_s = 60;
enum { DISMISS_MS = 5000 };

static int number(const char *name)
{
    const char *s = getenv(name);

    return s && *s ? atoi(s) : 0;
}

/* ---- what started us ---- */

static int without_pmix(const char *program, struct sl_err *err)
{
    int slurm = getenv("SLURM_PROCID") ? number("SLURM_STEP_NUM_TASKS") : 0;

    if (slurm > 1) {
        sl_fail(err, SL_USAGE, "srun started %d tasks without PMIx: they cannot find each other",
                slurm);
        return sl_hint(err, "Start them with srun --mpi=pmix %s; srun --mpi=list shows whether"
                            " this Slurm has it.", program);
    }
    if (number("OMPI_COMM_WORLD_SIZE") > 1 || number("PMI_SIZE") > 1) {
        sl_fail(err, SL_USAGE, "mpiexec started %d tasks without PMIx: they cannot find each other",
                number("OMPI_COMM_WORLD_SIZE") + number("PMI_SIZE"));
        return sl_hint(err, "Use Open MPI's mpirun or prterun, or srun --mpi=pmix.");
    }
    return 0;
}

/* What Slurm was asked for and what it gave, where the two can differ silently. */
static int check_slurm(const char *program, struct sl_err *err)
{
    int tasks = number("SLURM_STEP_NUM_TASKS"), nodes = number("SLURM_STEP_NUM_NODES");
    int per_node = number("SLURM_NTASKS_PER_NODE"), cpus = number("SLURM_CPUS_PER_TASK");
    int have = sl_proc_cpus();

    if (!getenv("SLURM_PROCID") || tasks < 1)
        return 0;
    if (nodes > 0 && tasks < nodes * per_node && tasks == 1) {
        sl_fail(err, SL_USAGE,
                "--ntasks=1 and --ntasks-per-node=%d contradict each other: Slurm started one task",
                per_node);
        return sl_hint(err, "Say srun --mpi=pmix -N%d --ntasks-per-node=%d %s", nodes, per_node,
                       program);
    }
    if (cpus > have) {
        sl_fail(err, SL_USAGE, "%d cpus per task were asked for, and this task may use %d", cpus,
                have);
        return sl_hint(err, "srun does not take --cpus-per-task over from sbatch: say srun --mpi=pmix"
                            " --cpus-per-task=%d %s", cpus, program);
    }
    return 0;
}

/* ---- meeting ---- */

static uint64_t hash_cpus(void)
{
    uint64_t h = 1469598103934665603u;
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        h = (h ^ (CPU_ISSET(i, &set) ? 1u : 0u)) * 1099511628211u;
    return h;
}

static int make_card(struct sl_member *m, const char *node, struct sl_err *err)
{
    unsigned char name[8];

    snprintf(m->version, sizeof m->version, "%s", SL_VERSION);
    if (node)
        snprintf(m->host, sizeof m->host, "%s", node);
    else
        gethostname(m->host, sizeof m->host - 1);
    if (getrandom(m->token, sizeof m->token, 0) != sizeof m->token
        || getrandom(name, sizeof name, 0) != sizeof name)
        return sl_fail(err, SL_SYSTEM, "no random bytes: %s", strerror(errno));
    snprintf(m->hand, sizeof m->hand, "shardlaunch-");
    for (size_t i = 0; i < sizeof name; i++)
        snprintf(m->hand + strlen(m->hand), 3, "%02x", name[i]);
    m->cpus = sl_proc_cpus();
    m->cpu_set = hash_cpus();
    return sl_proc_boot_id(m->boot, err);
}

static int check_cards(const struct sl_crew *c, struct sl_err *err)
{
    for (int i = 0; i < c->n; i++) {
        struct sl_member *m = &c->m[i];

        m->address[sizeof m->address - 1] = m->hand[sizeof m->hand - 1] = '\0';
        m->host[sizeof m->host - 1] = m->boot[sizeof m->boot - 1] = '\0';
        m->version[sizeof m->version - 1] = '\0';
        if (strcmp(m->version, SL_VERSION))
            return sl_fail(err, SL_USAGE, "task %d on %s runs version %s, this one %s", i, m->host,
                           m->version, SL_VERSION);
    }
    return 0;
}

static void find_nodes(struct sl_crew *c)
{
    c->nodes = 0;
    for (int i = 0; i < c->n; i++) {
        int j = 0;

        while (j < i && (strcmp(c->m[j].host, c->m[i].host) || strcmp(c->m[j].boot, c->m[i].boot)))
            j++;
        c->m[i].leader = c->m[j].leader = j;
        c->m[i].node = j == i ? c->nodes++ : c->m[j].node;
    }
}

int sl_crew_meet(const char *program, const char *node, struct sl_crew **ret, struct sl_err *err)
{
    struct sl_member card = {.node = -1};
    struct sl_bridge b;
    struct sl_crew *c;

    *ret = NULL;
    if (!getenv("PMIX_NAMESPACE") || !getenv("PMIX_RANK"))
        return without_pmix(program, err);
    if (check_slurm(program, err))
        return -1;
    if (number("SLURM_STEP_NUM_TASKS") == 1 || number("OMPI_COMM_WORLD_SIZE") == 1)
        return 0;
    c = sl_calloc(1, sizeof *c);
    if (!c)
        return sl_fail(err, SL_SYSTEM, "cannot hold the tasks: %s", strerror(errno));
    c->listen = c->hand = -1;
    if (make_card(&card, node, err))
        goto fail;
    c->listen = sl_star_listen(card.address, getenv("SHARDLAUNCH_IFNAME"), err);
    c->hand = sl_hand_listen(card.hand, err);
    if (c->listen < 0 || c->hand < 0 || sl_bridge_exchange(&card, sizeof card, meet_s, &b, err))
        goto fail;
    c->me = b.me;
    c->n = b.n;
    c->m = b.cards;
    if (check_cards(c, err))
        goto fail;
    find_nodes(c);
    if (c->n > 1) {
        *ret = c;
        return 1;
    }
    sl_crew_destroy(c);
    return 0;
fail:
    sl_crew_destroy(c);
    return -1;
}

void sl_crew_destroy(struct sl_crew *c)
{
    if (!c)
        return;
    if (c->listen >= 0)
        close(c->listen);
    if (c->hand >= 0)
        close(c->hand);
    free(c->m);
    free(c);
}

/* ---- the shape ---- */

static int tasks_of(const struct sl_crew *c, int node)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        n += c->m[i].node == node;
    return n;
}

int sl_crew_tasks(const struct sl_crew *c)
{
    for (int i = 1; i < c->nodes; i++)
        if (tasks_of(c, i) != tasks_of(c, 0))
            return -1;
    return tasks_of(c, 0);
}

int sl_crew_cores(const struct sl_crew *c)
{
    int least = 0;

    for (int node = 0; node < c->nodes; node++) {
        int sum = 0;

        for (int i = 0; i < c->n; i++) {
            int j = 0;

            while (j < i && (c->m[j].node != c->m[i].node || c->m[j].cpu_set != c->m[i].cpu_set))
                j++;
            if (c->m[i].node == node && j == i)
                sum += c->m[i].cpus;
        }
        if (!node || sum < least)
            least = sum;
    }
    return least;
}

static const char *first_of(const struct sl_crew *c, int node)
{
    for (int i = 0; i < c->n; i++)
        if (c->m[i].node == node)
            return c->m[i].host;
    return "?";
}

int sl_crew_shape(const struct sl_crew *c, const char *program, int64_t nodes,
                  int64_t ranks_per_node, int *ranks, struct sl_err *err)
{
    int tasks = sl_crew_tasks(c), each = tasks > 1 ? tasks : (int)ranks_per_node;
    char hosts[200];

    if (tasks < 0) {
        int other = 1;

        while (tasks_of(c, other) == tasks_of(c, 0))
            other++;
        sl_fail(err, SL_USAGE, "the nodes have different numbers of tasks: %s %d, %s %d",
                first_of(c, 0), tasks_of(c, 0), first_of(c, other), tasks_of(c, other));
        return sl_hint(err, "Say srun --mpi=pmix -N%d --ntasks-per-node=1 %s", c->nodes, program);
    }
    if (nodes > 1 && nodes != c->nodes) {
        sl_fail(err, SL_USAGE, "resources.nodes is %lld, and %d tasks were started on %d node%s (%s)",
                (long long)nodes, c->n, c->nodes, c->nodes == 1 ? "" : "s",
                sl_crew_hosts(c, hosts, sizeof hosts));
        return sl_hint(err, "Say srun --mpi=pmix -N%lld --ntasks-per-node=%d %s", (long long)nodes,
                       tasks, program);
    }
    if (tasks > 1 && ranks_per_node > 1 && ranks_per_node != tasks) {
        sl_fail(err, SL_USAGE,
                "resources.ranks_per_node is %lld, and each node has %d tasks of one rank",
                (long long)ranks_per_node, tasks);
        return sl_hint(err, "Say srun --mpi=pmix -N%d --ntasks-per-node=%lld %s, or"
                            " --ntasks-per-node=1.",
                       c->nodes, (long long)ranks_per_node, program);
    }
    if ((int64_t)each * c->nodes > SL_MAX_RANKS)
        return sl_fail(err, SL_USAGE, "%d ranks on each of %d nodes; the most is %d ranks", each,
                       c->nodes, SL_MAX_RANKS);
    *ranks = each;
    return 0;
}

void sl_crew_number(struct sl_crew *c, int ranks)
{
    int tasks = sl_crew_tasks(c);

    c->ranks = 0;
    for (int node = 0; node < c->nodes; node++)
        for (int i = 0; i < c->n; i++)
            if (c->m[i].node == node) {
                c->m[i].first = c->ranks;
                c->m[i].ranks = tasks > 1 ? 1 : ranks;
                c->ranks += c->m[i].ranks;
            }
}

void sl_crew_names(const struct sl_crew *c, const char **ret)
{
    for (int node = 0; node < c->nodes; node++)
        ret[node] = first_of(c, node);
}

const char *sl_crew_hosts(const struct sl_crew *c, char *ret, size_t size)
{
    struct sl_idset s;

    sl_idset_init(&s);
    for (int node = 0; node < c->nodes; node++)
        if (sl_idset_parse(&s, first_of(c, node), NULL))
            break;
    sl_idset_text(&s, ret, size);
    sl_idset_fini(&s);
    return ret;
}

/* ---- the end before the beginning ---- */

static const unsigned char *token_of(void *user, int index)
{
    const struct sl_crew *c = user;

    return index > 0 && index < c->n ? c->m[index].token : NULL;
}

void sl_crew_dismiss(struct sl_crew *c, int status)
{
    uint64_t end = sl_ctl_now() + DISMISS_MS * 1000000ull;
    int left = c->n - 1;

    while (left > 0 && sl_ctl_now() < end) {
        struct sl_star_conn conn;
        int index;

        if (sl_star_accept(&conn, c->listen, c->m[0].token, token_of, c, &index)) {
            usleep(20000);
            continue;
        }
        sl_star_put(&conn, SL_WORD_QUIT, status, 0, 0, NULL, 0);
        sl_star_close(&conn);
        left--;
    }
}
