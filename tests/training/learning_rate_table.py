"""Prints the table of learning_rate_test.cc: python3 tests/training/learning_rate_table.py

Each schedule is computed as the documentation of its model says it (torch.optim.lr_scheduler, Caffe's caffe.proto), in
terms of rates and not of factors; the warm-up by interpolation between its two ends.
"""
import math

BASE = 0.4
WARM_UP, START = 2.0, 0.25  # epochs, and factor of the first rate


def inverse(e):  # Caffe: base_lr * (1 + gamma * iter) ^ (-power)
    return BASE / (1 + 0.5 * e) ** 0.75


def step(e):  # Caffe: base_lr * gamma ^ floor(iter / step), one drop at a time
    rate = BASE
    while e >= 2.5:
        rate, e = rate * 0.3, e - 2.5
    return rate


def multistep(epoch):  # counts from the start of the run
    rate = BASE
    for milestone, gamma in ((3.0, 0.5), (7.25, 0.1)):
        if epoch >= milestone:
            rate *= gamma
    return rate


def exponential(e):  # Caffe: base_lr * gamma ^ iter
    return BASE * math.exp(e * math.log(0.7))


def polynomial(e):  # Keras: (initial - end) * (1 - step / decay_steps) ^ power + end
    end = 0.1 * BASE
    return (BASE - end) * (1 - min(e, 8.0) / 8.0) ** 1.5 + end


def cosine(e):  # eta_min + (base - eta_min) * (1 + cos(T_cur / T_max * pi)) / 2
    eta_min = 0.05 * BASE
    return eta_min + 0.5 * (BASE - eta_min) * (1 + math.cos(min(e, 8.0) / 8.0 * math.pi))


def cyclic(e):  # CyclicLR.get_lr in mode triangular2, whose base_lr is the lower bound and max_lr the upper bound
    base_lr, max_lr, up, down = 0.2 * BASE, BASE, 0.75, 2.25
    total, ratio = up + down, up / (up + down)
    cycle = math.floor(1 + e / total)
    x = 1 + e / total - cycle
    scale = x / ratio if x <= ratio else (x - 1) / (ratio - 1)
    return base_lr + (max_lr - base_lr) * scale / 2 ** (cycle - 1)


def one_cycle(e):  # OneCycleLR with anneal_strategy "cos": max_lr, max_lr / 25, and that / 1e4
    def anneal(start, end, share):
        return end + (start - end) / 2 * (math.cos(math.pi * share) + 1)

    e = min(e, 8.0)
    peak, initial = 0.3 * 8.0, BASE / 25
    if e < peak:
        return anneal(initial, BASE, e / peak)
    return anneal(BASE, initial / 1e4, (e - peak) / (8.0 - peak))


# CosineAnnealingWarmRestarts: eta_min + (base - eta_min) * (1 + cos(T_cur / T_i * pi)) / 2, where T_cur counts from the
# last restart. The legs of the run: epoch, T_i, and the factor that both rates are multiplied by.
def cosine_restarts(epoch):
    begin, length, factor = [leg for leg in ((0.0, 4.0, 1.0), (4.0, 3.25, 1.0), (7.5, 2.0, 0.5)) if leg[0] <= epoch][-1]
    base, eta_min = BASE * factor, 0.05 * BASE * factor
    return eta_min + (base - eta_min) * (1 + math.cos(min(1.0, (epoch - begin) / length) * math.pi)) / 2


def warmed(rate, epoch, of_run=False):
    if epoch < WARM_UP:
        first = rate(0.0)
        return START * first * (1 - epoch / WARM_UP) + first * (epoch / WARM_UP)
    return rate(epoch if of_run else epoch - WARM_UP)


EPOCHS = [0.0, 0.5, 1.0, 2.4, 2.5, 3.0, 4.4, 5.0, 7.25, 7.9, 8.0, 9.0]
print("cosine_restarts: " + ", ".join(f"{cosine_restarts(e):.9g}" for e in EPOCHS))
for curve in (inverse, step, multistep, exponential, polynomial, cosine, cyclic, one_cycle):
    for is_warmed in (False, True):
        rates = [warmed(curve, e, curve is multistep) if is_warmed else curve(e) for e in EPOCHS]
        print(f'{{"{curve.__name__}", {str(is_warmed).lower()}, {{{{' + ", ".join(f"{r:.9g}" for r in rates) + "}}},")
